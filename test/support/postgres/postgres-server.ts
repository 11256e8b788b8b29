import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { chown, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Client, type QueryResultRow } from 'pg'
import { freePort } from '../free-port.ts'
import { postgresFolder } from './find-postgres.ts'

export interface PostgresServerOptions {
  /** Settings that are added to the defaults of the tests, or override them. */
  readonly settings?: Readonly<Record<string, string>>
}

/**
 * A Postgres server for one test file. Its data is in a temporary folder, survives a restart, and is as durable as in
 * production: `fsync` is on.
 */
export class PostgresServer {
  readonly port: number
  readonly #folder: string
  readonly #settings: Readonly<Record<string, string>>
  #process: ChildProcess | undefined

  private constructor(port: number, folder: string, settings: Readonly<Record<string, string>>) {
    this.port = port
    this.#folder = folder
    this.#settings = settings
  }

  static async start({ settings = {} }: PostgresServerOptions = {}): Promise<PostgresServer> {
    const folder = await mkdtemp(join(tmpdir(), 'media-webhooks-postgres-'))
    const server = new PostgresServer(await freePort(), folder, settings)
    try {
      await createData(folder)
      await server.restart()
    } catch (error) {
      await rm(folder, { recursive: true })
      throw error
    }
    return server
  }

  /** Connects as the superuser to the database `postgres`. */
  get url(): string {
    return this.#urlOf('postgres')
  }

  /** Starts the server again after `stop`, on the same port with the same data. Resolves when it accepts connections. */
  async restart(): Promise<void> {
    const settings = {
      port: `${this.port}`,
      listen_addresses: '127.0.0.1',
      unix_socket_directories: this.#folder,
      shared_buffers: '32MB',
      // In the server's folder, so that nothing is left over after SIGKILL.
      dynamic_shared_memory_type: 'mmap',
      ...this.#settings,
    }
    const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    const child = spawn(program('postgres'), ['-D', join(this.#folder, 'data'), ...args], {
      ...serverUser(),
      cwd: this.#folder,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    this.#process = child
    // The server ends with this process, even when a test fails before it stops the server.
    const end = () => {
      child.kill('SIGQUIT')
      this.resume()
    }
    process.once('exit', end)
    child.once('exit', () => process.off('exit', end))
    const lines: string[] = []
    for await (const line of createInterface({ input: child.stderr })) {
      lines.push(line)
      if (!line.includes('database system is ready to accept connections')) continue
      child.stderr.resume()
      return
    }
    throw new Error(`postgres did not start:\n${lines.join('\n')}`)
  }

  /**
   * Stops the server. SIGTERM waits until every client has disconnected. SIGINT disconnects the clients and writes
   * everything to the data files. SIGKILL ends every process of the server immediately, as the loss of the machine
   * does.
   */
  async stop(signal: 'SIGTERM' | 'SIGINT' | 'SIGQUIT' | 'SIGKILL' = 'SIGKILL'): Promise<void> {
    const child = this.#process
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const exit = once(child, 'exit')
    if (signal !== 'SIGKILL') {
      child.kill(signal)
      await exit
      return
    }
    const pid = child.pid as number
    // Suspended, it starts no further process.
    send(pid, 'SIGSTOP')
    for (let backends = runningChildrenOf(pid); backends.length > 0; backends = runningChildrenOf(pid)) {
      for (const backend of backends) send(backend, 'SIGKILL')
      await setTimeout(2)
    }
    send(pid, 'SIGKILL')
    await exit
  }

  /** Runs one query on a connection of its own and returns the rows. */
  async query<Row extends QueryResultRow = QueryResultRow>(sql: string, values: unknown[] = []): Promise<Row[]> {
    const client = new Client({ connectionString: this.url })
    await client.connect()
    try {
      return (await client.query<Row>(sql, values)).rows
    } finally {
      await client.end()
    }
  }

  /** Creates an empty database and returns the URL that connects to it. */
  async createDatabase(name: string): Promise<string> {
    await this.query(`CREATE DATABASE "${name}"`)
    return this.#urlOf(name)
  }

  /** Suspends every process of the server: connections stay open and get no answers. */
  pause(): void {
    const pid = this.#process?.pid
    if (pid === undefined) return
    send(pid, 'SIGSTOP')
    for (const backend of childrenOf(pid)) send(backend, 'SIGSTOP')
  }

  resume(): void {
    const pid = this.#process?.pid
    if (pid === undefined) return
    for (const backend of childrenOf(pid)) send(backend, 'SIGCONT')
    send(pid, 'SIGCONT')
  }

  async remove(): Promise<void> {
    this.resume()
    // The quickest end that leaves no shared memory behind.
    await this.stop('SIGQUIT')
    await rm(this.#folder, { recursive: true })
  }

  #urlOf(database: string): string {
    return `postgres://postgres@127.0.0.1:${this.port}/${encodeURIComponent(database)}`
  }
}

async function createData(folder: string): Promise<void> {
  const user = serverUser()
  if (user !== undefined) await chown(folder, user.uid, user.gid)
  const args = ['--pgdata', join(folder, 'data'), '--username', 'postgres', '--auth', 'trust']
  args.push('--encoding', 'UTF8', '--locale', 'C')
  // The files of an empty server are not synced to the disk. The running server syncs what it writes.
  await promisify(execFile)(program('initdb'), [...args, '--no-sync'], { ...user, cwd: folder })
}

function program(name: 'initdb' | 'postgres'): string {
  const folder = postgresFolder()
  if (folder === undefined) throw new Error('The Postgres server is not installed')
  return join(folder, name)
}

/** The user that runs a server when this process is root, because neither Postgres nor PgBouncer starts as root. */
export function serverUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
  const user = users.find(([name]) => name === 'postgres') ?? users.find(([name]) => name === 'nobody')
  if (user === undefined) throw new Error('Postgres does not run as root, and there is no user postgres or nobody')
  return { uid: Number(user[2]), gid: Number(user[3]) }
}

/** The process ids of a process's children. Linux lists them in /proc; elsewhere `ps` does. */
function childrenOf(pid: number): number[] {
  const list = `/proc/${pid}/task/${pid}/children`
  if (existsSync(list)) return readFileSync(list, 'utf8').split(' ').filter(Boolean).map(Number)
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' }).trim().split('\n')
  return lines
    .map((line) => line.trim().split(/\s+/).map(Number))
    .flatMap(([id, parent]) => (parent === pid ? [id as number] : []))
}

const runningChildrenOf = (pid: number): number[] => childrenOf(pid).filter(runs)

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    // It has ended in the meantime.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/** `true` until the process has ended; a zombie has. */
function runs(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}
