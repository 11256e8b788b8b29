import { afterEach } from 'vitest'
import { run } from '../../src/cli/run.ts'

/** A run of the program in this process. */
export interface Running {
  /** What was written to the standard output so far. */
  readonly output: () => string
  readonly errors: () => string
  /** The first line of the standard output, past or to come, that matches. */
  line(pattern: RegExp): Promise<string>
  /** The lines that match, once there are so many. */
  lines(pattern: RegExp, count: number): Promise<string[]>
  /** What Ctrl-C does. */
  interrupt(): void
  readonly code: Promise<number>
}

type Environment = Readonly<Record<string, string>>

const running: Running[] = []
afterEach(async () => {
  for (const each of running.splice(0)) {
    each.interrupt()
    await each.code
  }
})

/** Starts the program, until the end of the test at the latest. */
export function start(args: readonly string[], env: Environment = {}): Running {
  const interrupted = new AbortController()
  const written = { stdout: '', stderr: '' }
  const waiting = new Set<() => void>()
  const stream = (name: keyof typeof written) => ({
    write(text: string) {
      written[name] += text
      for (const look of waiting) look()
    },
  })
  const code = run(args, { stdout: stream('stdout'), stderr: stream('stderr'), env, signal: interrupted.signal })

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
        const ended = () => reject(new Error(`it ended without ${pattern}:\n${written.stdout}${written.stderr}`))
        code.then(ended, ended)
      }),
  }
  running.push(program)
  return program
}

/** Runs the program to its end. */
export async function finish(args: readonly string[], env?: Environment) {
  const program = start(args, env)
  const code = await program.code
  return { code, output: program.output(), errors: program.errors() }
}
