// Follows links and submits forms with fetch, and morphs the current page into the response.
// Progressive enhancement: everything works without this script.

import { inUtc, localise } from './local-times.js'
import { morph } from './morph.js'

const root = document.documentElement
root.classList.add('scripted')

/** Base path of the assets. Tells this page from others, such as a sign-in page. */
export const { assets } = root.dataset

export const parse = (html) => new DOMParser().parseFromString(html, 'text/html')

/**
 * Hooks of the page. `isOpen`: updates arrive. `catchUp`: re-reads what changed since `before`. `hold`: marks what an
 * update must not touch, and returns true if there is any.
 */
const live = { isOpen: () => true, changes: () => 0, catchUp: async () => {}, hold() {} }

export const makeLive = (methods) => Object.assign(live, methods)

/** Morphs, and focuses `fallback` if the focused element was removed. */
export function morphWithFocus(from, to, fallback, sent) {
  const focused = document.activeElement
  morph(from, to, sent)
  if (!focused?.isConnected) fallback.focus({ preventScroll: true })
}

/** ETag of the shown page. Unset while part of the page is held back. */
let shownTag

/** Incremented on every navigation, to drop responses that arrive too late. */
let currentVersion = 0

/** @param {{ version: number, before?: number, sent?: HTMLFormElement, isUpdate?: boolean }} how */
async function show(response, { version, before = live.changes(), sent, isUpdate = false }) {
  const text = await response.text()
  if (version !== currentVersion) return
  if (!response.headers.get('content-type')?.startsWith('text/html')) throw new Error(messageIn(text))
  const shown = parse(text)
  localise(shown)
  // Not ours: a sign-in page, for example.
  if (shown.documentElement.dataset.assets !== assets) return location.assign(response.url)
  const notice = document.getElementById('notice')
  // The server renders a notice once. Keep it until the reader leaves the page.
  if (isUpdate) shown.getElementById('notice')?.replaceWith(notice.cloneNode(true))
  // Updates in flight read the previous page.
  if (!isUpdate) currentVersion++
  document.title = shown.title
  const isHeld = live.hold(isUpdate)
  shownTag = isHeld ? undefined : response.headers.get('etag')
  morphWithFocus(document.body, shown.body, notice, sent)
  // Filters show what the URL says.
  if (!isUpdate) for (const form of document.querySelectorAll('form[method="get"]')) form.reset()
  if (live.isOpen()) reportLive()
  if (live.changes() !== before) await live.catchUp()
}

export async function update() {
  const version = currentVersion
  const headers = shownTag ? { 'if-none-match': shownTag } : {}
  const response = await fetch(location.href, { redirect: 'manual', headers })
  if (version !== currentVersion || response.status === 304) return
  if (response.type === 'opaqueredirect') return location.reload()
  await show(response, { version, isUpdate: true })
}

function messageIn(text) {
  try {
    return JSON.parse(text).message
  } catch {
    return text.slice(0, 200)
  }
}

/** Scrolls to the start of a new page and moves the focus there, for keyboards and screen readers. */
function arrive(target = document.querySelector('[data-heading]')) {
  if (target?.dataset.heading === undefined) target?.scrollIntoView({ block: 'nearest' })
  else scrollTo(0, 0)
  if (target?.hasAttribute('tabindex')) target.focus({ preventScroll: true })
}

export async function visit(address, { push = true } = {}) {
  const version = ++currentVersion
  const before = live.changes()
  const url = new URL(address, location.href)
  const response = await fetch(url, { redirect: 'manual' })
  if (version !== currentVersion) return
  // A redirect: let the browser follow it.
  if (response.type === 'opaqueredirect') return push ? location.assign(url) : location.reload()
  const isElsewhere = url.pathname !== location.pathname
  await show(response, { version, before })
  if (!push) return
  history.pushState(null, '', url)
  const target = document.getElementById(url.hash.slice(1))
  if (target !== null || isElsewhere) arrive(target ?? undefined)
}

/** Submits a form. Keeps the input if the action is rejected. */
async function send(form, submitter) {
  const before = live.changes()
  const body = new URLSearchParams(new FormData(form, submitter))
  const address = submitter?.hasAttribute('formaction') ? submitter.formAction : form.action
  const response = await fetch(address, { method: 'POST', body })
  const shown = new URL(response.url)
  // A confirmation, or the progress of a long action.
  const isElsewhere = response.ok && !(response.redirected && shown.pathname === location.pathname)
  if (response.ok) {
    const details = form.closest('details')
    if (details?.contains(document.activeElement)) details.querySelector('summary').focus()
    details?.removeAttribute('open')
    form.reset()
    shown.searchParams.delete('notice')
    if (response.redirected) history.replaceState(null, '', shown)
  }
  await show(response, { version: ++currentVersion, before, sent: form })
  if (isElsewhere) arrive()
}

const connection = () => document.getElementById('connection')

export function reportLive() {
  connection().className = ''
  connection().textContent = '● live'
}

export function report(message) {
  connection().className = 'lost'
  connection().textContent = `✕ ${message}`
}

export const reportFailure = (promise) => promise.catch(({ message }) => report(message))

// Screen readers announce the counts, at most every 5 s.
setInterval(() => {
  const news = document.getElementById('news')
  const { textContent } = document.querySelector('[data-news]') ?? news
  if (news.textContent !== textContent) news.textContent = textContent
}, 5_000)

/** Forms in flight: further submits are ignored. */
const pending = new WeakSet()

document.addEventListener('submit', (event) => {
  const { target: form, submitter } = event
  event.preventDefault()
  if (form.method === 'get') {
    const given = [...new FormData(form)].filter(([, value]) => value !== '')
    const chosen = given.map(([name, value]) => [name, inUtc(form, name, value)])
    reportFailure(visit(`${form.getAttribute('action')}?${new URLSearchParams(chosen)}`))
  } else if (!pending.has(form)) {
    pending.add(form)
    reportFailure(send(form, submitter)).finally(() => pending.delete(form))
  }
})
document.addEventListener('change', ({ target }) => {
  if (target.form?.method === 'get' && target.type !== 'search') target.form.requestSubmit()
})
document.addEventListener('click', async (event) => {
  const { target, button, ctrlKey, metaKey, shiftKey, altKey } = event
  const copy = target.closest('[data-copy]')
  if (copy) {
    await navigator.clipboard.writeText(copy.dataset.copy)
    copy.textContent = 'Copied'
    setTimeout(() => (copy.textContent = 'Copy'), 1_500)
  }
  const link = target.closest('a[href^="/"]:not([download])')
  if (!link || button !== 0 || ctrlKey || metaKey || shiftKey || altKey) return
  event.preventDefault()
  reportFailure(visit(link.href))
})
addEventListener('popstate', () => reportFailure(visit(location.href, { push: false })))
localise(document)
