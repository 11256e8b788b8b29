// Shows times in the reader's time zone. The server renders UTC, which moves to the tooltip.

const { timeZone } = Intl.DateTimeFormat().resolvedOptions()

/** Local time as `2026-03-01T13:00:00.000`. */
const local = (at) => new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, -1)

/** Local time of day, such as `13:00`. */
export const timeOfDay = (at) => local(at).slice(11, 16)

/** Converts all times and filter fields of a document to local time. */
export function localise(root) {
  const footer = root.querySelector('[data-zone]')
  if (timeZone === 'UTC' || footer === null) return
  footer.textContent = `Times are in ${timeZone}.${matchMedia('(hover: hover)').matches ? ' Hover over a time for UTC.' : ''}`
  for (const time of root.querySelectorAll('time')) {
    const text = local(new Date(time.dateTime)).replace('T', ' ')
    // An age has the exact time in its tooltip, other times in their text.
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

/** Converts the value of a localised field back to UTC for the server. Returns other values as they are. */
export function inUtc(form, name, value) {
  const field = form.elements[name]
  return field?.dataset?.local === '' && value !== '' ? new Date(value).toISOString().slice(0, 16) : value
}
