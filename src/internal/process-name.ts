import { hostname } from 'node:os'

/** The name of this process for operators: its host and its pid. It has no space, since Redis takes none in a name. */
export const processName = `${hostname()}:${process.pid}`
