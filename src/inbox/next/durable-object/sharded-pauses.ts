import type { InboxHost } from '../../inbox.ts'
import type { Pause, PauseOptions, Pauses, ResumeOptions } from '../../reading.ts'
import type { Shards } from './shards.ts'

/** The pauses of all objects. Each object stores them too, so it asks no other when it wakes. */
export class ShardedPauses implements Pauses {
  readonly #shards: Shards
  readonly #host: Pick<InboxHost, 'handlers'>

  constructor(shards: Shards, host: Pick<InboxHost, 'handlers'>) {
    this.#shards = shards
    this.#host = host
  }

  handlers(): readonly string[] {
    return this.#host.handlers().map(({ name }) => name)
  }

  async list(): Promise<readonly Pause[]> {
    const all = (await this.#shards.askAll<Pause[]>('pauses')).flat()
    const oldestFirst = all
      .map(({ since, ...pause }) => ({ ...pause, since: new Date(since) }))
      .sort((a, b) => a.since.getTime() - b.since.getTime())
    // Objects are paused one by one.
    return oldestFirst.filter(
      (pause, index) => index === oldestFirst.findIndex((each) => each.handler === pause.handler),
    )
  }

  async pause(options: PauseOptions = {}): Promise<boolean> {
    return (await this.#shards.askAll<boolean>('pause', options)).includes(true)
  }

  async resume(options: ResumeOptions = {}): Promise<boolean> {
    return (await this.#shards.askAll<boolean>('resume', options)).includes(true)
  }
}
