import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { freePort } from '../free-port.ts'

export type Slots = readonly [first: number, last: number]

const everySlot: Slots = [0, 16_383]

export interface RedisServerOptions {
  /** Starts a cluster of one node, which holds every slot, or only these: the first and the last. */
  readonly cluster?: boolean | Slots
  /** Settings that are added to the defaults of the tests, or override them. */
  readonly settings?: Readonly<Record<string, string>>
}

/** A redis-server for one test. Its data is in a temporary folder and survives a restart. */
export class RedisServer {
  readonly port: number
  readonly #folder: string
  readonly #settings: Readonly<Record<string, string>>
  readonly #slots: Slots | undefined
  #process: ChildProcess | undefined

  private constructor(port: number, folder: string, settings: Readonly<Record<string, string>>, slots?: Slots) {
    this.port = port
    this.#folder = folder
    this.#settings = settings
    this.#slots = slots
  }

  static async start({ cluster = false, settings = {} }: RedisServerOptions = {}): Promise<RedisServer> {
    const folder = await mkdtemp(join(tmpdir(), 'media-webhooks-redis-'))
    const slots = cluster === true ? everySlot : cluster || undefined
    const ofCluster: Record<string, string> = slots
      ? {
          'cluster-enabled': 'yes',
          'cluster-announce-ip': '127.0.0.1',
          'cluster-port': `${await freePort()}`,
          'cluster-require-full-coverage': 'no',
        }
      : {}
    const server = new RedisServer(await freePort(), folder, { ...ofCluster, ...settings }, slots)
    await server.restart()
    return server
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`
  }

  /** Joins nodes to a cluster. Resolves when each knows who has which slot. */
  static async join(nodes: readonly RedisServer[]): Promise<void> {
    const [first, ...others] = nodes as [RedisServer, ...RedisServer[]]
    const { port } = first
    const busPort = first.#settings['cluster-port'] as string
    for (const node of others) await node.command('CLUSTER', 'MEET', '127.0.0.1', `${port}`, busPort)
    for (const node of nodes)
      while (!(await node.command('CLUSTER', 'INFO')).includes('cluster_slots_assigned:16384')) await setTimeout(20)
  }

  /** Starts the server again after `stop`, on the same port with the same data. */
  async restart(): Promise<void> {
    const settings = {
      port: `${this.port}`,
      bind: '127.0.0.1',
      dir: this.#folder,
      save: '',
      appendonly: 'yes',
      appendfsync: 'everysec',
      ...this.#settings,
    }
    const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value])
    const child = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'inherit'] })
    this.#process = child
    // The server ends with this process, even when a test fails before it stops the server.
    const kill = () => child.kill('SIGKILL')
    process.once('exit', kill)
    child.once('exit', () => process.off('exit', kill))
    const lines: string[] = []
    for await (const line of createInterface({ input: child.stdout })) {
      lines.push(line)
      if (line.includes('Ready to accept connections')) break
    }
    if (child.exitCode === null) {
      child.stdout.resume()
      if (this.#slots !== undefined) await takeSlots(this.port, this.#slots)
      return
    }
    throw new Error(`redis-server did not start:\n${lines.join('\n')}`)
  }

  /** Stops the server. With SIGTERM it first writes its data to the disk. */
  async stop(signal: 'SIGTERM' | 'SIGKILL' = 'SIGKILL'): Promise<void> {
    const child = this.#process
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const exit = once(child, 'exit')
    child.kill(signal)
    await exit
  }

  /** Sends one command and returns its answer as text. */
  async command(name: string, ...parameters: string[]): Promise<string> {
    const redis = new Redis(this.port)
    try {
      return String(await redis.call(name, ...parameters))
    } finally {
      redis.disconnect()
    }
  }

  /** Makes Redis refuse writes: it cannot save a snapshot, since a folder has the place of the file. */
  async failSnapshots(): Promise<void> {
    await mkdir(join(this.#folder, 'dump.rdb', 'taken'), { recursive: true })
    await this.command('CONFIG', 'SET', 'save', '3600 1')
    await this.command('BGSAVE').catch(() => {})
    while (!(await this.command('INFO', 'persistence')).includes('rdb_last_bgsave_status:err')) await setTimeout(20)
  }

  /** Suspends the server: connections stay open and get no answers. */
  pause(): void {
    this.#process?.kill('SIGSTOP')
  }

  resume(): void {
    this.#process?.kill('SIGCONT')
  }

  async remove(): Promise<void> {
    await this.stop()
    await rm(this.#folder, { recursive: true })
  }
}

async function takeSlots(port: number, [first, last]: Slots): Promise<void> {
  const redis = new Redis(port)
  // Fails after a restart, when the node has the slots already.
  await redis.call('CLUSTER', 'ADDSLOTSRANGE', first, last).catch(() => {})
  while (!String(await redis.cluster('INFO')).includes('cluster_state:ok')) await setTimeout(20)
  redis.disconnect()
}
