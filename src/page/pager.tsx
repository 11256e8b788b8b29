/**
 * Finds the page of a list that was asked for, at least the first and at most the last one.
 * @param asked NaN or 0 for the first one
 */
export function pageAt(asked: number, total: number, limit: number) {
  const last = Math.max(1, Math.ceil(total / limit))
  const current = Math.min(Math.max(1, Math.trunc(asked || 1)), last)
  return { current, last, offset: (current - 1) * limit, limit }
}

interface PagerProps {
  /** The name of the listed things, such as `webhooks`. */
  readonly of: string
  readonly current: number
  readonly last: number
  readonly address: (page: number) => string
  /** The names of the links to the previous and the next page. */
  readonly names?: readonly [previous: string, next: string]
}

/** Links to the previous and the next page of a list. It is absent when there is only one page. */
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
