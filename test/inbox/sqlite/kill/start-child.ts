import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { FromChild } from './child.ts'

/** Makes the path at which the child keeps the effects of its handlers. */
export const effectsPathOf = (path: string) => join(dirname(path), 'effects.db')

const usual = new URL('./child.ts', import.meta.url)

/**
 * Starts a process with a receiver over the file of an inbox.
 * @param argument what the program needs beside the path
 */
export async function startChild(path: string, program = usual, argument = effectsPathOf(path)) {
  const child: ChildProcess = fork(fileURLToPath(program), [path, argument], { execArgv: ['--import', 'tsx'] })
  const exit = once(child, 'exit')

  const hear = async (): Promise<FromChild> => {
    const [message] = await Promise.race([
      once(child, 'message'),
      exit.then(() => Promise.reject(new Error('it ended'))),
    ])
    return message
  }

  const { url } = (await hear()) as { url: string }
  return {
    url,
    pid: child.pid as number,
    /** Asks how many events it has not finished. */
    async unfinished(): Promise<number> {
      child.send('how much is left?')
      return ((await hear()) as { unfinished: number }).unfinished
    },
    async kill(): Promise<void> {
      child.kill('SIGKILL')
      await exit
    },
  }
}
