// Makes the page live: server-sent events name what changed; the sections that show it are reloaded.

import {
  assets,
  makeLive,
  morphWithFocus,
  parse,
  report,
  reportFailure,
  reportLive,
  visit,
} from '../../../internal/page/page.js'

const stale = new Set()
let changes = 0
let refreshing = false

/** @param {string[]} [kinds] what changed; everything by default */
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
  const response = await fetch(`${assets}/sections/${id}${search}`)
  const section = parse(await response.text()).getElementById(id)
  const current = document.getElementById(id)
  // The view may have changed meanwhile.
  if (search !== location.search) stale.add(id)
  else if (section) morphWithFocus(current, section, current.querySelector('h2'))
}

/** @type {EventSource | undefined} */
let source
let lost = false

function connect() {
  source?.close()
  source = new EventSource('/emulator/events')
  source.onopen = () => {
    // After a lost connection, another emulator may be at this address.
    reportFailure(lost ? visit(location.href, { push: false }) : refresh())
    lost = false
    reportLive()
  }
  source.onmessage = ({ data }) => {
    changes += 1
    reportFailure(refresh(JSON.parse(data)))
  }
  source.onerror = () => {
    lost = true
    report('not connected, retrying')
    if (source.readyState === EventSource.CLOSED) setTimeout(connect, 2_000)
  }
}

makeLive({ isOpen: () => source?.readyState === EventSource.OPEN, changes: () => changes, catchUp: () => refresh() })

// Browsers limit connections per server; a hidden page needs none.
document.addEventListener('visibilitychange', () => (document.hidden ? source.close() : connect()))
connect()
