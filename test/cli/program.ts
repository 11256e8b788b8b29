import { Readable } from 'node:stream'
import { onTestFinished } from 'vitest'
import { run } from '../../src/cli/run.ts'

/** A run of the program in this process. */
export interface Running {
  /** The standard output so far. */
  readonly output: () => string
  /** The standard error so far. */
  readonly errors: () => string
  /** Waits for the first line of the standard output that matches. */
  line(pattern: RegExp): Promise<string>
  /** Waits until a number of lines match, and returns them. */
  lines(pattern: RegExp, count: number): Promise<string[]>
  /** Does what Ctrl-C does. */
  interrupt(): void
  readonly code: Promise<number>
}

type Environment = Readonly<Record<string, string>>

/**
 * Starts the program. The end of the test interrupts it.
 * @param stdin its standard input, empty by default
 */
export function start(args: readonly string[], env: Environment = {}, stdin: Readable = Readable.from([])): Running {
  const interrupted = new AbortController()
  const written = { stdout: '', stderr: '' }
  const waiting = new Set<() => void>()
  const stream = (name: keyof typeof written) => ({
    write(text: string) {
      written[name] += text
      for (const look of waiting) look()
    },
  })
  const { signal } = interrupted
  const code = run(args, { stdout: stream('stdout'), stderr: stream('stderr'), stdin, env, signal })

  const program: Running = {
    output: () => written.stdout,
    errors: () => written.stderr,
    code,
    interrupt: () => interrupted.abort(),
    line: async (pattern) => (await program.lines(pattern, 1))[0] as string,
    lines: (pattern, count) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const lines = written.stdout.split('\n').filter((line) => pattern.test(line))
          if (lines.length < count) return
          waiting.delete(look)
          resolve(lines)
        }
        waiting.add(look)
        look()
        const ended = () =>
          reject(new Error(`the program ended without ${pattern}:\n${written.stdout}${written.stderr}`))
        code.then(ended, ended)
      }),
  }
  onTestFinished(async () => {
    program.interrupt()
    await code
  })
  return program
}

/** Runs the program to its end. */
export async function finish(args: readonly string[], env?: Environment, stdin?: Readable) {
  const program = start(args, env, stdin)
  const code = await program.code
  return { code, output: program.output(), errors: program.errors() }
}
