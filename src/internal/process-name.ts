import { hostname } from 'node:os'

/** The name of this process for operators: its host and its id. */
export const processName = `${hostname()}, pid ${process.pid}`
