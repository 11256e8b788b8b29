#!/usr/bin/env node
import { run } from './run.ts'

const interrupted = new AbortController()
// `once`, so that a second signal ends the program immediately.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupted.abort())

// The reader of the output has closed it, as `head` does. Nothing is left to do.
for (const output of [process.stdout, process.stderr]) {
  output.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))
}

const { stdout, stderr, env } = process
process.exitCode = await run(process.argv.slice(2), {
  stdout,
  stderr,
  // Opened only by a command that reads it.
  get stdin() {
    return process.stdin
  },
  env,
  signal: interrupted.signal,
})
