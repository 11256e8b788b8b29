#!/usr/bin/env node
import { run } from './run.ts'

const interrupted = new AbortController()
// `once`, so that a second signal ends the program immediately.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupted.abort())

// A reader that closes the output, as `head` does, does not change the exit code.
const outputClosed = new AbortController()
for (const output of [process.stdout, process.stderr]) {
  output.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') process.exit(1)
    outputClosed.abort()
  })
}

const { stdout, stderr, env } = process
process.exitCode = await run(process.argv.slice(2), {
  stdout,
  stderr,
  // Only a command that reads it opens it.
  get stdin() {
    return process.stdin
  },
  env,
  signal: interrupted.signal,
  outputClosed: outputClosed.signal,
})
