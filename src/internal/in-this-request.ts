import { unref } from './timers.ts'

/** How long a platform keeps a request after its answer, in ms; Workers keep it for 30 s. */
const longestStayMs = 30_000

/**
 * Runs something where this is called, once the function it returns is called, wherever that is. Workers tie what code
 * starts to the request in which it runs, and stop it with that request: an event has to be handled in its own.
 */
export function inThisRequest(run: () => void): () => void {
  // They also give up on a request that awaits nothing but another request. A timer is something of its own.
  const stay = setTimeout(() => {}, longestStayMs)
  unref(stay)
  let begin = () => {}
  const begun = new Promise<void>((resolve) => {
    begin = resolve
  })
  void begun.then(() => {
    clearTimeout(stay)
    run()
  })
  return begin
}
