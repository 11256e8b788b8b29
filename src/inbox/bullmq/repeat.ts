import { type Timer, unref } from '../../internal/timers.ts'

/**
 * Repeats work, starting in the next event-loop turn. Returns a function that stops it.
 * @param work resolves with the delay before the next run (ms); must not reject
 */
export function repeat(work: () => Promise<number>): () => void {
  let timer: Timer | undefined
  let isStopped = false
  const runIn = (delayMs: number) => {
    if (isStopped) return
    timer = setTimeout(async () => runIn(await work()), delayMs)
    unref(timer)
  }
  runIn(0)
  return () => {
    isStopped = true
    clearTimeout(timer)
  }
}
