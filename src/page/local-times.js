// Times in the reader's zone. The server knows UTC only, which stays in the tooltip.

const { timeZone } = Intl.DateTimeFormat().resolvedOptions()

/** Writes the local time of a moment as `2026-03-01T13:00:00.000`. */
const local = (at) => new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, -1)

/** Returns the time of day of a moment, such as `13:00`. */
export const timeOfDay = (at) => local(at).slice(11, 16)

/** Puts the times of a document, and those of its filters, into the reader's zone. */
export function localise(root) {
  const footer = root.querySelector('[data-zone]')
  if (timeZone === 'UTC' || footer === null) return
  footer.textContent = `Times are in ${timeZone}.${matchMedia('(hover: hover)').matches ? ' The pointer on one shows it in UTC.' : ''}`
  for (const time of root.querySelectorAll('time')) {
    const text = local(new Date(time.dateTime)).replace('T', ' ')
    // Either the text or the tooltip of an age is the exact time.
    if (time.title) time.title = `${text} (${time.title})`
    else {
      time.title = time.textContent.includes('UTC') ? time.textContent : `${time.textContent} UTC`
      time.textContent = text.slice(0, time.textContent.replace(' UTC', '').length)
    }
  }
  for (const input of root.querySelectorAll('[type="datetime-local"]')) {
    const label = input.closest('label').firstElementChild
    label.textContent = label.textContent.replace(' (UTC)', '')
    input.dataset.local = ''
    const at = new Date(`${input.getAttribute('value')}Z`)
    if (!Number.isNaN(at.getTime())) input.setAttribute('value', local(at).slice(0, 16))
  }
}

/** Returns the value of a field as the server reads it: a time in UTC. */
export function inUtc(form, name, value) {
  const field = form.elements[name]
  return field?.dataset?.local === '' && value !== '' ? new Date(value).toISOString().slice(0, 16) : value
}
