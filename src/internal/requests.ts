import { unref } from './timers.ts'

/**
 * `true` on Workers, which tie all work to the request in which it was started. When that request ends, its timers
 * never fire and its promises never settle.
 */
export const requestsEndWork =
  (globalThis as { navigator?: { userAgent?: string } }).navigator?.userAgent === 'Cloudflare-Workers'

/** Maximum time for which Workers keep a request alive after its answer, in ms. */
export const requestLifeMs = 30_000

/** The request that a job belongs to. */
interface Life {
  /** The time at which the request is over, in ms of `performance.now`. */
  until: number
  /** `true` if the job has to run in the request that adds it. That request waits for the job. */
  isTied: boolean
  /** Starts the job in that request. */
  start?: () => void
}

/**
 * Ties jobs to requests, for Workers. When a request ends, its work ends also: the timers never fire, and the promises
 * never settle.
 */
export class RequestLifetimes {
  readonly #lives = new WeakMap<object, Life>()

  /**
   * Gives the job to the current request, for up to `lifeMs`.
   * @param isTied `true` if the job has to run in the request that adds it, as long as the job exists
   */
  begin(job: object, lifeMs = requestLifeMs, isTied = this.#lives.get(job)?.isTied ?? false): void {
    this.#lives.set(job, { until: performance.now() + lifeMs, isTied })
  }

  /** Returns `true` if the request of the job is over. In that case its promises never settle. */
  isOver(job: object): boolean {
    return !((this.#lives.get(job)?.until ?? 0) > performance.now())
  }

  /** Remembers the current request. A tied job has to start in it. */
  added(job: object, start: () => void): void {
    const life = this.#lives.get(job)
    if (life?.isTied) life.start = inThisRequest(start)
  }

  /** Starts a job in its request, if it is tied to a live request. */
  start(job: object): boolean {
    const start = this.isOver(job) ? undefined : this.#lives.get(job)?.start
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

/** Makes the lifetimes of the jobs of an inbox. `undefined` if requests do not end work. */
export const requestLifetimes = (): RequestLifetimes | undefined =>
  requestsEndWork ? new RequestLifetimes() : undefined
