import { requestLifeMs, requestsEndWork } from '../../internal/requests.ts'
import { unref } from '../../internal/timers.ts'

/**
 * Ties jobs to requests, for Workers: work that is begun in a request ends with that request. Its timers never fire then,
 * and its promises never settle.
 */
export class RequestLifetimes {
  /** The times at which the requests of jobs are over, in ms of `performance.now`. */
  readonly #ends = new WeakMap<object, number>()
  readonly #tied = new WeakSet<object>()
  readonly #starts = new WeakMap<object, () => void>()

  /** The job lasts as long as the current request, or for `lifeMs`. */
  begin(job: object, lifeMs = requestLifeMs): void {
    this.#ends.set(job, performance.now() + lifeMs)
  }

  /** Returns `true` if the request of the job is over: what it waits for never comes. */
  isOver(job: object): boolean {
    return (this.#ends.get(job) ?? 0) <= performance.now()
  }

  /** The job has to run in the request that adds it, which waits for it. */
  tie(job: object): void {
    this.#tied.add(job)
  }

  /** Remembers the current request as the one in which a tied job has to start. */
  added(job: object, start: () => void): void {
    if (this.#tied.has(job)) this.#starts.set(job, inThisRequest(start))
  }

  /** Starts a job, if it is tied and its request goes on, in that request. */
  start(job: object): boolean {
    const start = this.isOver(job) ? undefined : this.#starts.get(job)
    start?.()
    return start !== undefined
  }
}

/** Returns a function that, wherever it is called, makes `run` run in the request that is current now. */
function inThisRequest(run: () => void): () => void {
  // Workers also give up on a request that only awaits another request. This timer is work of its own.
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
