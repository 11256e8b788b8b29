import { unref } from './timers.ts'

/**
 * `true` on Workers, which tie all work to the request in which it was started. When that request ends, its timers
 * never fire and its promises never settle.
 */
export const requestsEndWork =
  (globalThis as { navigator?: { userAgent?: string } }).navigator?.userAgent === 'Cloudflare-Workers'

/** The longest time for which Workers keep a request alive after its answer, in ms. */
export const requestLifeMs = 30_000

/** Returns a function that, wherever it is called, makes `run` run in the request that is current now. */
export function inThisRequest(run: () => void): () => void {
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
