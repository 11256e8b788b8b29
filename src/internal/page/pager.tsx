/**
 * Clamps a page number to the pages of a list.
 * @param asked NaN or 0 for the first page
 */
export function pageAt(asked: number, total: number, limit: number) {
  const last = Math.max(1, Math.ceil(total / limit))
  const current = Math.min(Math.max(1, Math.trunc(asked || 1)), last)
  return { current, last, offset: (current - 1) * limit, limit }
}

interface PagerProps {
  readonly of: string
  readonly current: number
  readonly last: number
  readonly address: (page: number) => string
  readonly names?: readonly [previous: string, next: string]
}

/** Previous and next links. Renders nothing for a single page. */
export function Pager({ of, current, last, address, names: [previous, next] = ['Newer', 'Older'] }: PagerProps) {
  if (last === 1) return null
  return (
    <nav class="pager" aria-label={`Pages of ${of}`}>
      {current > 1 ? <a href={address(current - 1)}>← {previous}</a> : <span />}
      <span>
        Page {current} of {last}
      </span>
      {current < last ? <a href={address(current + 1)}>{next} →</a> : <span />}
    </nav>
  )
}
