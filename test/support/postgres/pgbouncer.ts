import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { createInterface } from 'node:readline'
import { canTest } from '../can-test.ts'
import { freePort } from '../free-port.ts'
import { serverUser } from './postgres-server.ts'

/** PgBouncer on the PATH, or where Debian puts it. */
function program(): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin']
  return folders.map((folder) => join(folder, 'pgbouncer')).find((path) => existsSync(path))
}

/** Returns true if the tests that need PgBouncer can run. */
export const findPgBouncer = (): boolean =>
  canTest(program() !== undefined, 'PgBouncer is not installed', 'install it (Debian: apt-get install pgbouncer)')

/** A PgBouncer in front of the server of a test file. */
export class PgBouncer {
  readonly url: string
  readonly #folder: string
  readonly #process: ChildProcess

  private constructor(url: string, folder: string, child: ChildProcess) {
    this.url = url
    this.#folder = folder
    this.#process = child
  }

  /** @param settings settings of PgBouncer, such as `server_round_robin` */
  static async start(
    serverPort: number,
    mode: 'session' | 'transaction',
    settings: Readonly<Record<string, string>> = {},
  ): Promise<PgBouncer> {
    const folder = await mkdtemp(join(tmpdir(), 'media-webhooks-pgbouncer-'))
    const user = serverUser()
    if (user !== undefined) await chown(folder, user.uid, user.gid)
    const port = await freePort()
    const lines = Object.entries({
      listen_addr: '127.0.0.1',
      listen_port: `${port}`,
      unix_socket_dir: '',
      auth_type: 'any',
      pool_mode: mode,
      ...settings,
    }).map(([name, value]) => `${name} = ${value}`)
    const file = join(folder, 'pgbouncer.ini')
    const databases = `[databases]\n* = host=127.0.0.1 port=${serverPort} user=postgres`
    await writeFile(file, `${databases}\n[pgbouncer]\n${lines.join('\n')}\n`)
    const child = spawn(program() as string, [file], { ...user, cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] })
    const bouncer = new PgBouncer(`postgres://postgres@127.0.0.1:${port}/postgres`, folder, child)
    const said: string[] = []
    for await (const line of createInterface({ input: child.stderr })) {
      said.push(line)
      if (!line.includes('process up')) continue
      child.stderr.resume()
      return bouncer
    }
    await rm(folder, { recursive: true })
    throw new Error(`pgbouncer did not start:\n${said.join('\n')}`)
  }

  async stop(): Promise<void> {
    const exit = once(this.#process, 'exit')
    this.#process.kill('SIGQUIT')
    await exit
    await rm(this.#folder, { recursive: true })
  }
}
