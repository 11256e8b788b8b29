import { sleep } from '../../internal/timers.ts'
import type { InboxHost } from '../inbox.ts'
import { ownNames } from './awaits.ts'
import type { ClaimedLane, Database, SharedSteps } from './database.ts'

/** Lanes per claim. */
const maxAwaited = 64

/** Delay before lanes are looked for again for which there was no room (ms). */
const noRoomMs = 100

export interface AwaitedClaimsOptions {
  readonly database: Pick<Database, 'run'>
  readonly shared: Pick<SharedSteps, 'claimAwaited'>
  readonly host: Pick<InboxHost, 'handlers' | 'logger'>
  /** How many lanes there is room for. */
  readonly room: () => number
  /** Takes over claimed lanes. */
  readonly claimed: (lanes: readonly ClaimedLane[], owner: string) => void
  /** Runs a step that claims lanes while no other does. */
  readonly exclusively: <T>(run: () => Promise<T>) => Promise<T>
  readonly owner: () => string
  /** True while this process may claim lanes. */
  readonly holds: () => boolean
  /** A claim failed: it may have claimed lanes all the same. */
  readonly failed: () => void
}

/** Claims the lanes with events that await handlers of this process, or handlers that were removed. */
export class AwaitedClaims {
  readonly #options: AwaitedClaimsOptions
  #sweeping: Promise<void> | undefined
  /** True if there may be lanes that the sweep under way has not seen. */
  #mayAwait = false

  constructor(options: AwaitedClaimsOptions) {
    this.#options = options
  }

  start(): void {
    this.#mayAwait = true
    this.#sweeping ??= this.#sweep().finally(() => {
      this.#sweeping = undefined
    })
  }

  async #sweep(): Promise<void> {
    const { exclusively, room, holds, failed } = this.#options
    const claim = () => this.#claim()
    const claimFailed = () => {
      failed()
      return false
    }
    while (this.#mayAwait && holds()) {
      this.#mayAwait = false
      let mayBeMore: boolean
      do mayBeMore = await exclusively(claim).catch(claimFailed)
      while (mayBeMore && room() > 0 && holds())
      if (mayBeMore) await sleep(noRoomMs)
      this.#mayAwait ||= mayBeMore
    }
  }

  /** Claims one lane without room too: claims of ready lanes may leave none. Returns true if there may be more. */
  async #claim(): Promise<boolean> {
    const { database, shared, host, room, claimed } = this.#options
    const lanes = Math.min(maxAwaited, Math.max(1, room()))
    const owner = this.#options.owner()
    const awaited = await database.run(shared.claimAwaited(owner, ownNames(host.handlers()), lanes))
    host.logger.debug({ lanes: awaited.length, room: lanes }, 'claimed lanes whose events await handlers')
    claimed(awaited, owner)
    return awaited.length === lanes
  }
}
