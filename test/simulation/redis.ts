import type { HttpRedisClient, IoredisClient } from '../../src/idempotency/redis-client.ts'
import { runScript } from './lua.ts'
import { currentScope, type Scope, type World } from './world.ts'

/** A server with the commands that the store's scripts use. Its keys expire by the world's clock. */
export class RedisServer {
  readonly #world: World
  readonly #entries = new Map<string, { readonly value: string; readonly expiresAt: number }>()

  constructor(world: World) {
    this.#world = world
  }

  eval(script: string, keys: readonly string[], parameters: readonly string[]): string | number {
    return runScript(script, keys, parameters, (command, key, value, option, ms) => {
      if (command === 'GET') return this.get(key as string) ?? null
      if (command === 'DEL') return this.#entries.delete(key as string) ? 1 : 0
      if (command !== 'SET' || option !== 'PX') throw new Error(`the simulated Redis has no ${command} ${option}`)
      this.#entries.set(key as string, { value: value as string, expiresAt: this.#world.now + Number(ms) })
      return 'OK'
    })
  }

  get(key: string): string | undefined {
    const entry = this.#entries.get(key)
    return entry !== undefined && entry.expiresAt > this.#world.now ? entry.value : undefined
  }

  /** The keys that have not expired, with their values. */
  *[Symbol.iterator](): IterableIterator<[key: string, value: string]> {
    for (const key of this.#entries.keys()) {
      const value = this.get(key)
      if (value !== undefined) yield [key, value]
    }
  }
}

/**
 * The faults of a command. `lost`: it never arrives. `answer-lost`: it is carried out. `twice`: its answer is lost,
 * and the client sends it again when it is connected again. `hung`: its answer takes longer than any caller waits.
 */
export type RedisFault = 'lost' | 'answer-lost' | 'twice' | 'hung'

export interface RedisLinkOptions {
  readonly world: World
  readonly server: RedisServer
  /** Draws the fault of a command; `undefined` for none. */
  readonly fault: () => RedisFault | undefined
  /** Maximum time to the server or back, in ms. */
  readonly latencyMs: number
}

/** The time after which a broken connection is restored, in ms. */
const reconnectionMs = 60

/** A client as ioredis is one: connected to the server through a network. */
export class RedisLink implements IoredisClient {
  readonly #options: RedisLinkOptions
  #disconnectedUntil = 0

  constructor(options: RedisLinkOptions) {
    this.#options = options
  }

  get status(): string {
    return this.#options.world.now < this.#disconnectedUntil ? 'reconnecting' : 'ready'
  }

  async eval(script: string, _keys: number, key: string, ...parameters: string[]): Promise<unknown> {
    const { world, server, fault: drawFault } = this.#options
    const scope = currentScope() as Scope
    if (this.status !== 'ready') throw new Error('Connection is closed.')
    const fault = drawFault()
    await this.#travel(scope)
    if (fault === 'lost') return this.#break()
    const carryOut = () => server.eval(script, [key], parameters)
    let answer = carryOut()
    if (fault === 'answer-lost') return this.#break()
    if (fault === 'hung') await world.sleep(scope, 20_000)
    if (fault === 'twice') {
      this.#disconnectedUntil = world.now + reconnectionMs
      await world.sleep(scope, reconnectionMs)
      answer = carryOut()
    }
    await this.#travel(scope)
    return answer
  }

  #travel({ process }: Scope): Promise<void> {
    const { world, latencyMs } = this.#options
    // The machine of the process carries it on while the process is paused.
    return world.sleep(process, process.random.between(0, latencyMs))
  }

  #break(): never {
    this.#disconnectedUntil = this.#options.world.now + reconnectionMs
    throw new Error('Connection is closed.')
  }
}

/** The pause before a client sends a command over HTTP again, in ms. */
const resendMs = 50

/** A client as that of Upstash is one: it sends each command over HTTP, again if that fails. It works on Workers. */
export class HttpRedisLink implements HttpRedisClient {
  readonly #options: RedisLinkOptions

  constructor(options: RedisLinkOptions) {
    this.#options = options
  }

  async eval(script: string, keys: string[], parameters: string[]): Promise<unknown> {
    const { world, server, fault: drawFault, latencyMs } = this.#options
    const scope = currentScope() as Scope
    for (;;) {
      const fault = drawFault()
      const { random } = scope.process
      await world.sleep(scope, random.between(0, latencyMs))
      if (fault !== 'lost') {
        const answer = server.eval(script, keys, parameters)
        if (fault === 'hung') await world.sleep(scope, 20_000)
        // The answer is lost if the request that asked has ended meanwhile.
        await world.sleep(scope, random.between(0, latencyMs))
        if (fault === undefined || fault === 'hung') return answer
      }
      await world.sleep(scope, resendMs)
    }
  }
}
