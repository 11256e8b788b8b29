import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'

/** Starts a program of this folder. It is killed with the test. Resolves with its first message. */
export async function startProgram(name: string, args: readonly (string | number)[]) {
  const program = fileURLToPath(new URL(`./${name}.ts`, import.meta.url))
  const child: ChildProcess = fork(program, args.map(String), { execArgv: ['--import', 'tsx'] })
  const ended = once(child, 'exit')
  const kill = async () => {
    child.kill('SIGKILL')
    await ended
  }
  onTestFinished(kill)
  const first = await Promise.race([
    once(child, 'message').then(([message]) => message as unknown),
    ended.then(([code]) => Promise.reject(new Error(`${name} ended with ${code}`))),
  ])
  return { child, first, ended, kill }
}
