import type { Logger } from '../../src/index.ts'

/** A logger that writes nothing. */
export const silent: Logger = { debug() {}, info() {}, warn() {}, error() {} }
