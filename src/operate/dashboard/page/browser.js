// Live updates by polling, less often if the server is slow.

import { timeOfDay } from '../../../internal/page/local-times.js'
import { makeLive, report, reportFailure, reportLive, update } from '../../../internal/page/page.js'

const delayMs = 2_000
let lost = false
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer

async function poll() {
  clearTimeout(timer)
  if (document.hidden) return
  const startedAt = performance.now()
  // A confirmation answers a POST: there is no URL to poll.
  const isStill = document.querySelector('[data-still]') !== null
  try {
    if (!isStill) await update()
    lost = false
    reportLive()
  } catch ({ message }) {
    lost = true
    report(message === 'Failed to fetch' || navigator.onLine === false ? 'not connected, retrying' : message)
  }
  timer = setTimeout(poll, Math.max(delayMs, 10 * (performance.now() - startedAt)))
}

/** Freezes a list while the reader uses it: if rows move, a click hits the wrong event. */
function hold(isUpdate) {
  let isHeld = false
  // The bars of another period differ.
  if (!isUpdate) for (const output of document.querySelectorAll('.chart output')) output.textContent = ''
  for (const list of document.querySelectorAll('.list')) {
    const isTicked = list.querySelector('input:checked') !== null
    const isUsed = list.querySelector('table:is(:hover, :focus-within)') !== null
    const isRead = isUsed || list.getBoundingClientRect().top < 0
    if (list.toggleAttribute('data-script', isUpdate && (isTicked || isRead))) isHeld = true
    const paused = list.querySelector('.paused')
    if (isUpdate && isTicked) paused.textContent = 'The list is paused while events are selected.'
    else if (isUpdate && isRead) paused.textContent = 'The list is paused while you read it.'
  }
  return isHeld
}

/** Index of the selected bar, by chart. */
const bars = new WeakMap()

function showBar(chart, asked) {
  const { since, slot, texts } = chart.dataset
  const each = texts.split('|')
  const bar = Math.min(Math.max(asked, 0), each.length - 1)
  bars.set(chart, bar)
  const time = timeOfDay(new Date(Number(since) + bar * Number(slot)))
  chart.querySelector('output').textContent = `${time}: ${each[bar]}`
}

document.addEventListener('pointermove', ({ target, clientX }) => {
  const drawing = target.closest?.('.chart svg')
  if (!drawing) return
  const { left, width } = drawing.getBoundingClientRect()
  const chart = drawing.closest('.chart')
  showBar(chart, Math.floor(((clientX - left) / width) * chart.dataset.texts.split('|').length))
})
document.addEventListener('keydown', (event) => {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key]
  if (by === undefined || !event.target.matches?.('.chart')) return
  event.preventDefault()
  showBar(event.target, (bars.get(event.target) ?? Number.POSITIVE_INFINITY) + by)
})

makeLive({ isOpen: () => !lost, hold })
document.addEventListener('visibilitychange', () => reportFailure(poll()))
reportFailure(poll())
