import { hostname } from 'node:os'

/** The name operators see: host and pid. No spaces, which Redis rejects in names. */
export const processName = `${hostname()}:${process.pid}`
