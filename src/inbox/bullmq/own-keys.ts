import type { Redis } from 'ioredis'
import { scripts } from './scripts.ts'

/** The inbox's own Redis keys, apart from those of BullMQ. */
export class OwnKeys {
  readonly prefix: string
  readonly #client: Record<string, (...parameters: unknown[]) => Promise<unknown>>

  constructor(client: Redis, queue: string) {
    this.prefix = `webhooks:${queue}:`
    for (const [name, lua] of Object.entries(scripts)) client.defineCommand(commandOf(name), { numberOfKeys: 1, lua })
    this.#client = client as never
  }

  of(name: string): string {
    return this.prefix + name
  }

  /** Runs a script. The prefix is its only key, which routes to the queue's cluster node, and its first argument. */
  run<Result = number>(script: keyof typeof scripts, ...parameters: readonly (string | number)[]): Promise<Result> {
    return this.#client[commandOf(script)]?.(this.prefix, this.prefix, ...parameters) as Promise<Result>
  }
}

/** Prefixed: the client has BullMQ's scripts as well. */
const commandOf = (script: string): string => `webhooks:${script}`

/** Pairs the members that `WITHSCORES` returns with their scores. */
export const withScores = (found: readonly string[]): [member: string, score: string][] =>
  found.flatMap((member, i) => (i % 2 === 0 ? [[member, found[i + 1] as string]] : []))
