import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../support/free-port.ts'
import { startProgram } from '../support/program.ts'
import type { Deployment } from './platform.suite.ts'

/** A server program. It listens on `PORT` at 127.0.0.1, and prints a line that `listening` matches. */
export interface ServerProgram {
  readonly command: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly env?: Record<string, string>
  /** @defaultValue `/^listening on (\d+)$/` */
  readonly listening?: RegExp
  /** The path of its webhook. */
  readonly path: string
}

/** A deployment that can also be killed. */
export interface ServerDeployment extends Deployment {
  restart(signal?: NodeJS.Signals): Promise<void>
  /** Returns what it has written since it was started last. */
  output(): string
}

/**
 * Deploys a server program, with a folder for what it stores as `FOLDER`. Its handlers append the line of each run that
 * succeeded to the file `HANDLED` before they return (`recordHandled`). A restart sends it SIGTERM.
 */
export async function serverDeployment({ command, args, cwd, env, ...rest }: ServerProgram): Promise<ServerDeployment> {
  const { listening = /^listening on (\d+)$/, path } = rest
  const folder = mkdtempSync(join(tmpdir(), 'platform-'))
  const handledFile = join(folder, 'handled')
  const port = await freePort()
  const variables = { ...env, PORT: `${port}`, FOLDER: folder, HANDLED: handledFile }
  const start = () => startProgram(command, args, { cwd, env: variables }, listening)
  let program = await start()
  return {
    url: `http://127.0.0.1:${port}${path}`,
    async handled() {
      return existsSync(handledFile) ? readFileSync(handledFile, 'utf8').split('\n').slice(0, -1) : []
    },
    async restart(signal = 'SIGTERM') {
      await program.stop(signal)
      program = await start()
    },
    output: () => program.output(),
    async stop() {
      await program.stop()
      rmSync(folder, { recursive: true })
    },
  }
}
