#!/usr/bin/env node
import { run } from './run.ts'

const interrupted = new AbortController()
// A second signal ends the process at once. One press of Ctrl-C can be two: npm passes on what the terminal also sends.
const samePressMs = 500
let interruptedAt: number | undefined
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    interruptedAt ??= performance.now()
    interrupted.abort()
    if (performance.now() - interruptedAt < samePressMs) return
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
  })
}

// EPIPE is normal, as with `| head`: it must not change the exit code.
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
  // Lazy: touching `process.stdin` opens it.
  get stdin() {
    return process.stdin
  },
  env,
  signal: interrupted.signal,
  outputClosed: outputClosed.signal,
})
