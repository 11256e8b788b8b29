// Makes the page live. It is read again every few seconds, and less often if the server is slow.

import { attempt, makeLive, report, reportLive, update } from '../../page/page.js'

const pauseMs = 2_000
let lost = false
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer

async function poll() {
  clearTimeout(timer)
  if (document.hidden) return
  const startedAt = performance.now()
  // A question that waits for its answer has no address of its own.
  const isStill = document.querySelector('[data-still]') !== null
  try {
    if (!isStill) await update()
    lost = false
    reportLive()
  } catch ({ message }) {
    lost = true
    report(message === 'Failed to fetch' || navigator.onLine === false ? 'not connected, retrying' : message)
  }
  timer = setTimeout(poll, Math.max(pauseMs, 10 * (performance.now() - startedAt)))
}

makeLive({ isOpen: () => !lost })
document.addEventListener('visibilitychange', () => attempt(poll()))
attempt(poll())
