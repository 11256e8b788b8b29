// Makes the page live. Without this script everything works too, by documents and forms.

import { morph } from './morph.js'

document.documentElement.classList.add('scripted')

const parse = (html) => new DOMParser().parseFromString(html, 'text/html')
const connection = document.getElementById('connection')
const news = document.getElementById('news')

/** Makes an element like another one. If the focused element is removed, `fallback` gets the focus. */
function morphWithFocus(from, to, fallback, sent) {
  const focused = document.activeElement
  morph(from, to, sent)
  if (!focused?.isConnected) fallback.focus({ preventScroll: true })
}

/** Shows the page in a response. */
async function show(response, before, sent) {
  if (!response.headers.get('content-type')?.startsWith('text/html')) throw new Error((await response.json()).message)
  const { body } = parse(await response.text())
  morphWithFocus(document.body, body, document.getElementById('notice'), sent)
  // The filter shows what the address says.
  for (const form of document.querySelectorAll('form[method="get"]')) form.reset()
  if (source.readyState === EventSource.OPEN) reportLive()
  if (changes !== before) await refresh()
}

/** Opens an address of the page. */
async function visit(address, { push = true } = {}) {
  const before = changes
  const url = new URL(address, location.href)
  await show(await fetch(url), before)
  if (!push) return
  history.pushState(null, '', url)
  const target = document.getElementById(url.hash.slice(1))
  target?.scrollIntoView({ block: 'nearest' })
  if (target?.hasAttribute('tabindex')) target.focus({ preventScroll: true })
}

/** Sends a form. If the action is rejected, the input stays. */
async function send(form) {
  const before = changes
  const response = await fetch(form.action, { method: 'POST', body: new URLSearchParams(new FormData(form)) })
  if (response.ok) {
    const details = form.closest('details')
    if (details?.contains(document.activeElement)) details.querySelector('summary').focus()
    details?.removeAttribute('open')
    form.reset()
    const address = new URL(response.url)
    address.searchParams.delete('notice')
    history.replaceState(null, '', address)
  }
  await show(response, before, form)
}

/* Server-sent events name what changed, and the sections that show it are reloaded. */

const stale = new Set()
let changes = 0
let refreshing = false

/** @param {string[]} [kinds] the kinds of things that changed; all by default */
async function refresh(kinds) {
  for (const { id, dataset } of document.querySelectorAll('section[data-shows]')) {
    if (!kinds || dataset.shows.split(' ').some((kind) => kinds.includes(kind))) stale.add(id)
  }
  if (refreshing) return
  refreshing = true
  try {
    for (const id of stale) await refreshSection(id)
  } finally {
    refreshing = false
  }
}

async function refreshSection(id) {
  stale.delete(id)
  const { search } = location
  const response = await fetch(`/page/sections/${id}${search}`)
  const section = parse(await response.text()).getElementById(id)
  const current = document.getElementById(id)
  // The reader may have changed the view in the meantime.
  if (search !== location.search) stale.add(id)
  else if (section) morphWithFocus(current, section, current.querySelector('h2'))
}

// Screen readers announce the counts, at most every 5 s.
setInterval(() => {
  const { textContent } = document.querySelector('[data-news]')
  if (news.textContent !== textContent) news.textContent = textContent
}, 5_000)

/** @type {EventSource | undefined} */
let source
let lost = false

function connect() {
  source?.close()
  source = new EventSource('/emulator/events')
  source.onopen = () => {
    // After a lost connection another emulator may be at this address.
    attempt(lost ? visit(location.href, { push: false }) : refresh())
    lost = false
    reportLive()
  }
  source.onmessage = ({ data }) => {
    changes += 1
    attempt(refresh(JSON.parse(data)))
  }
  source.onerror = () => {
    lost = true
    report('not connected, retrying')
    if (source.readyState === EventSource.CLOSED) setTimeout(connect, 2_000)
  }
}

// A browser limits the connections to one server, and a hidden page needs none.
document.addEventListener('visibilitychange', () => (document.hidden ? source.close() : connect()))

function reportLive() {
  connection.className = ''
  connection.textContent = '● live'
}

function report(message) {
  connection.className = 'lost'
  connection.textContent = `✕ ${message}`
}

/** The forms that wait for their answer. A second click on one is ignored. */
const pending = new WeakSet()

const attempt = (promise) => promise.catch(({ message }) => report(message))

document.addEventListener('submit', (event) => {
  const form = event.target
  event.preventDefault()
  if (form.method === 'get') {
    const chosen = [...new FormData(form)].filter(([, value]) => value !== '')
    attempt(visit(`/?${new URLSearchParams(chosen)}`))
  } else if (!pending.has(form)) {
    pending.add(form)
    attempt(send(form)).finally(() => pending.delete(form))
  }
})
document.addEventListener('change', ({ target }) => {
  if (target.form?.method === 'get') target.form.requestSubmit()
})
document.addEventListener('click', async (event) => {
  const { target, button, ctrlKey, metaKey, shiftKey, altKey } = event
  const copy = target.closest('[data-copy]')
  if (copy) {
    await navigator.clipboard.writeText(copy.dataset.copy)
    copy.textContent = 'Copied'
    setTimeout(() => (copy.textContent = 'Copy'), 1_500)
  }
  const link = target.closest('a[href^="/"]')
  if (!link || button !== 0 || ctrlKey || metaKey || shiftKey || altKey) return
  event.preventDefault()
  attempt(visit(link.href))
})
addEventListener('popstate', () => attempt(visit(location.href, { push: false })))
connect()
