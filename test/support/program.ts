import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

export interface Program {
  /** The text that the pattern captured. */
  readonly captured: string
  /** Everything it has written. */
  output(): string
  /** Ends it. The status is `null` if the signal ended it. */
  stop(signal?: NodeJS.Signals): Promise<number | null>
}

export interface ProgramOptions {
  readonly cwd: string
  readonly env?: Record<string, string>
}

/** Starts a program and waits for the line with its address. It fails when the program ends first. */
export async function startProgram(
  command: string,
  args: readonly string[],
  { cwd, env }: ProgramOptions,
  listening: RegExp,
): Promise<Program> {
  const { PATH = '', HOME = '' } = process.env
  const child = spawn(command, args, { cwd, env: { PATH, HOME, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  const captured = new Promise<string>((resolve, reject) => {
    const onLine = (line: string) => {
      output += `${line}\n`
      const port = listening.exec(line)?.[1]
      if (port !== undefined) resolve(port)
    }
    createInterface(child.stdout).on('line', onLine)
    createInterface(child.stderr).on('line', onLine)
    child.once('error', reject)
    child.once('close', (status) => reject(new Error(`${command} ended with status ${status}:\n${output}`)))
  })
  return { captured: await captured, output: () => output, stop: (signal = 'SIGKILL') => stop(child, signal) }
}

async function stop(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) {
    const closed = once(child, 'close')
    child.kill(signal)
    await closed
  }
  return child.exitCode
}
