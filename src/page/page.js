// Follows links and sends forms without reloading: the page in the answer is shown in place of the current one.
// Everything also works without this script, by documents and forms.

import { inUtc, localise } from './local-times.js'
import { morph } from './morph.js'

const root = document.documentElement
root.classList.add('scripted')

/** The path below which the assets of this page are. Another page has another one. */
export const { assets } = root.dataset

export const parse = (html) => new DOMParser().parseFromString(html, 'text/html')

/**
 * Set by the page. `isOpen`: it gets updates. `catchUp`: reads again what has changed since `before`. `hold`: marks what an
 * update must leave as it is, and returns true if there is any.
 */
const live = { isOpen: () => true, changes: () => 0, catchUp: async () => {}, hold() {} }

/** Connects what makes the page live. */
export const makeLive = (methods) => Object.assign(live, methods)

/** Makes an element like another one. If the focused element is removed, `fallback` gets the focus. */
export function morphWithFocus(from, to, fallback, sent) {
  const focused = document.activeElement
  morph(from, to, sent)
  if (!focused?.isConnected) fallback.focus({ preventScroll: true })
}

/** The ETag of the page that is shown. Absent while a part of an older one is. */
let shownTag

/** Grows with each change of the shown page, so that a slower answer does not replace a later one. */
let currentVersion = 0

/**
 * Shows the page in a response.
 * @param {{ version: number, before?: number, sent?: HTMLFormElement, isUpdate?: boolean }} how
 */
async function show(response, { version, before = live.changes(), sent, isUpdate = false }) {
  const text = await response.text()
  if (version !== currentVersion) return
  if (!response.headers.get('content-type')?.startsWith('text/html')) throw new Error(messageIn(text))
  const shown = parse(text)
  localise(shown)
  // A page to sign in, for example.
  if (shown.documentElement.dataset.assets !== assets) return location.assign(response.url)
  const notice = document.getElementById('notice')
  // The notice is shown once, but stays until the reader leaves the page.
  if (isUpdate) shown.getElementById('notice')?.replaceWith(notice.cloneNode(true))
  // An update that began meanwhile has read the page before.
  if (!isUpdate) currentVersion++
  document.title = shown.title
  const isHeld = live.hold(isUpdate)
  shownTag = isHeld ? undefined : response.headers.get('etag')
  morphWithFocus(document.body, shown.body, notice, sent)
  // The filter shows what the address says.
  if (!isUpdate) for (const form of document.querySelectorAll('form[method="get"]')) form.reset()
  if (live.isOpen()) reportLive()
  if (live.changes() !== before) await live.catchUp()
}

/** Reads the page again. */
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

/** Shows the beginning of another page, and lets the keyboard and a screen reader continue from there. */
function arrive(target = document.querySelector('[data-heading]')) {
  if (target?.dataset.heading === undefined) target?.scrollIntoView({ block: 'nearest' })
  else scrollTo(0, 0)
  if (target?.hasAttribute('tabindex')) target.focus({ preventScroll: true })
}

/** Opens an address of the page. */
export async function visit(address, { push = true } = {}) {
  const version = ++currentVersion
  const before = live.changes()
  const url = new URL(address, location.href)
  const response = await fetch(url, { redirect: 'manual' })
  if (version !== currentVersion) return
  // To another page of this one, or to one to sign in.
  if (response.type === 'opaqueredirect') return push ? location.assign(url) : location.reload()
  const isElsewhere = url.pathname !== location.pathname
  await show(response, { version, before })
  if (!push) return
  history.pushState(null, '', url)
  const target = document.getElementById(url.hash.slice(1))
  if (target !== null || isElsewhere) arrive(target ?? undefined)
}

/** Sends a form. If the action is rejected, the input stays. */
async function send(form, submitter) {
  const before = live.changes()
  const body = new URLSearchParams(new FormData(form, submitter))
  const address = submitter?.hasAttribute('formaction') ? submitter.formAction : form.action
  const response = await fetch(address, { method: 'POST', body })
  const shown = new URL(response.url)
  // A question, or the page of a long action.
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

/** Reports the failure of a promise. */
export const attempt = (promise) => promise.catch(({ message }) => report(message))

// Screen readers announce the counts, at most every 5 s.
setInterval(() => {
  const news = document.getElementById('news')
  const { textContent } = document.querySelector('[data-news]') ?? news
  if (news.textContent !== textContent) news.textContent = textContent
}, 5_000)

/** The forms that wait for their answer. A second click on one is ignored. */
const pending = new WeakSet()

document.addEventListener('submit', (event) => {
  const { target: form, submitter } = event
  event.preventDefault()
  if (form.method === 'get') {
    const given = [...new FormData(form)].filter(([, value]) => value !== '')
    const chosen = given.map(([name, value]) => [name, inUtc(form, name, value)])
    attempt(visit(`${form.getAttribute('action')}?${new URLSearchParams(chosen)}`))
  } else if (!pending.has(form)) {
    pending.add(form)
    attempt(send(form, submitter)).finally(() => pending.delete(form))
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
  attempt(visit(link.href))
})
addEventListener('popstate', () => attempt(visit(location.href, { push: false })))
localise(document)
