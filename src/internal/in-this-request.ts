import { unref } from './timers.ts'

/** The longest that a platform keeps a request after its answer, in ms: Workers keep it for 30 s. */
const longestStayMs = 30_000

/**
 * Returns a function that, wherever it is called, makes `run` run in the request that is current now. Workers tie the
 * work that code starts to the request in which the code runs, and stop it with that request.
 */
export function inThisRequest(run: () => void): () => void {
  // Workers also give up on a request that only awaits another request. This timer is something of its own to await.
  const stay = setTimeout(() => {}, longestStayMs)
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
