import { unref } from './timers.ts'

/**
 * `true` on Workers, which tie all work to the request in which it was started. When that request ends, its timers
 * never fire and its promises never settle.
 */
export const requestsEndWork =
  (globalThis as { navigator?: { userAgent?: string } }).navigator?.userAgent === 'Cloudflare-Workers'

/** Maximum time for which Workers keep a request alive after its answer, in ms. */
export const requestLifeMs = 30_000

/** The request that some work belongs to. */
interface Life {
  /** The time at which the request is over, in ms of `performance.now`. */
  until: number
  /** `true` if the work has to be done in the request that adds it. That request waits for it. */
  isTied: boolean
  /** Starts the work in that request. */
  start?: () => void
}

/** Knows which request each piece of work belongs to, on Workers: a job of an inbox, or the renewals of a lease. */
export class RequestLifetimes {
  readonly #lives = new WeakMap<object, Life>()

  /**
   * Gives the work to the current request, for up to `lifeMs`.
   * @param isTied `true` if the work has to be done in the request that adds it, as long as the work exists
   */
  begin(work: object, lifeMs = requestLifeMs, isTied = this.#lives.get(work)?.isTied ?? false): void {
    this.#lives.set(work, { until: performance.now() + lifeMs, isTied })
  }

  /** Returns `true` if the request of the work is over. In that case its promises never settle. */
  isOver(work: object): boolean {
    return !((this.#lives.get(work)?.until ?? 0) > performance.now())
  }

  /** Remembers the current request. Tied work has to start in it. */
  added(work: object, start: () => void): void {
    const life = this.#lives.get(work)
    if (life?.isTied) life.start = inThisRequest(start)
  }

  /** Starts work in its request, if it is tied to a live request. */
  start(work: object): boolean {
    const start = this.isOver(work) ? undefined : this.#lives.get(work)?.start
    start?.()
    return start !== undefined
  }
}

/** Returns a function that calls `run` in the current request, even if another request calls the function. */
function inThisRequest(run: () => void): () => void {
  // Workers also give up on a request if it only awaits another request. This timer counts as work.
  const stay = setTimeout(() => {}, requestLifeMs)
  unref(stay)
  let start = () => {}
  const started = new Promise<void>((resolve) => {
    start = resolve
  })
  void started.then(() => {
    clearTimeout(stay)
    run()
  })
  return start
}

/** Makes a record of the requests that work belongs to. `undefined` if requests do not end work. */
export const requestLifetimes = (): RequestLifetimes | undefined =>
  requestsEndWork ? new RequestLifetimes() : undefined
