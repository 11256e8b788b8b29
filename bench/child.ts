import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'

/** A child process that answers questions, one at a time. */
export interface Child {
  readonly pid: number | undefined
  /** Sends a question. Rejects when the process ends before it answers. */
  ask<Answer>(question: unknown): Promise<Answer>
  stop(): Promise<void>
}

/** The cores of the measured process and of the load. Empty if processes cannot be pinned. */
export const cores: readonly number[] = allowedCores()

function allowedCores(): number[] {
  const { stdout, status } = spawnSync('taskset', ['-pc', `${process.pid}`], { encoding: 'utf8' })
  if (status !== 0) return []
  const ranges = stdout.slice(stdout.lastIndexOf(':') + 1).split(',')
  const allowed = ranges.flatMap((range) => {
    const [from = 0, to = from] = range.split('-').map(Number)
    return Array.from({ length: to - from + 1 }, (_, index) => from + index)
  })
  return allowed.length < 2 ? [] : allowed.slice(0, 2)
}

// `npx tsx --cpu-prof bench/main.ts` profiles the children, which do all the work.
const profiling = process.execArgv.filter((flag) => flag.startsWith('--cpu-prof'))

export interface ChildOptions {
  /** `any`: it is not pinned. */
  readonly core: 'measured' | 'load' | 'any'
  readonly args?: readonly string[]
  /** Flags of Node. */
  readonly flags?: readonly string[]
  /** `true` if it imports the sources. The build of the package must not find them. */
  readonly runsSources?: boolean
  /** Added to the environment. */
  readonly env?: Readonly<Record<string, string>>
}

/** Starts a script, pinned to one core if that is possible. */
export function startChild(script: URL, options: ChildOptions): Child {
  const { core: role, args: scriptArgs = [], flags = [], runsSources = false, env } = options
  const register = runsSources ? 'tsx' : new URL('./register.mjs', import.meta.url).href
  const node = [process.execPath, ...profiling, ...flags, '--import', register, fileURLToPath(script), ...scriptArgs]
  const core = role === 'any' ? undefined : cores[role === 'measured' ? 0 : 1]
  const [command = '', ...args] = core === undefined ? node : ['taskset', '-c', `${core}`, ...node]
  const child = spawn(command, args, {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, ...env },
  })
  const ended = once(child, 'exit')

  return {
    pid: child.pid,
    async ask<Answer>(question: unknown) {
      const gone = ended.then(([code]) => {
        throw new Error(`${[basename(script.pathname), ...scriptArgs].join(' ')} ended with ${code} before it answered`)
      })
      const answer = once(child, 'message')
      child.send(question as object)
      const [message] = await Promise.race([answer, gone])
      return message as Answer
    },
    async stop() {
      // A killed process would not write its profile.
      if (child.connected) child.disconnect()
      await ended
    },
  }
}

/** Answers the parent's questions, in a child process. An error ends the process, and the parent's `ask` rejects. */
export function answerWith<Question>(answer: (question: Question) => Promise<unknown>): void {
  process.on('message', async (question) => process.send?.(await answer(question as Question)))
  process.on('disconnect', () => process.exit())
}

/** Starts a child for some work, and stops it. */
export async function withChild<Result>(script: URL, options: ChildOptions, work: (child: Child) => Promise<Result>) {
  const child = startChild(script, options)
  try {
    return await work(child)
  } finally {
    await child.stop()
  }
}
