import { maskedUrl, withoutSecret } from '../../shared/mask.ts'
import type { Screen } from '../../shared/screen.ts'
import { plain, table } from '../../shared/text.ts'
import { isCredential, masked } from './credentials.ts'
import type { Received } from './received.ts'

/** A delivery as it is shown: nothing in it is a credential. */
export type Described = ReturnType<typeof describe>

/** What is known of the sender's secret. */
interface Known {
  /** What must not be shown, wherever it stands. */
  readonly secret: string | undefined
  /** Whether the end of the path is meant to be it. */
  readonly tokenInPath: boolean
}

export function describe({ delivery, method, report, event }: Received, { secret, tokenInPath }: Known) {
  const hide = (text: string): string => withoutSecret(text, secret)
  return {
    at: new Date().toISOString(),
    method,
    url: hide(maskedUrl(delivery.url, tokenInPath)),
    outcome: report.outcome,
    status: report.status,
    ...(report.reason !== undefined && { reason: report.reason }),
    headers: delivery.fields.map(([name, value]) => {
      return [name, hide(isCredential(name, value) ? masked(value) : value)] as const
    }),
    ...(event && { event }),
  }
}

/** Prints a delivery: a line for what became of it, one for its event, then its headers. */
export function printReceived(described: Described, { print, paint }: Screen): void {
  const { at, method, url, outcome, status, reason, headers, event } = described
  const style = status !== 200 ? 'yellow' : outcome === 'accepted' ? 'green' : 'dim'
  print(`\n${paint('dim', at.slice(11, 23))}  ${paint(style, `${status} ${outcome}`)}  ${plain(`${method} ${url}`)}`)
  if (reason !== undefined) print(`  ${paint('yellow', plain(reason))}`)
  if (event !== undefined) {
    const { type, mediaId, qualities, status: word, title, test, format } = event
    const facts = [qualities.join(','), word, title === undefined ? undefined : `'${title}'`, test ? 'test' : undefined]
    const rest = [...facts, format === 'envelope' ? format : undefined].filter(
      (each) => each !== undefined && each !== '',
    )
    print(plain(`  ${[type, mediaId, ...rest].join('  ')}`))
  }
  print(
    paint(
      'dim',
      table(
        headers.map(([name, value]) => [plain(name), plain(value)]),
        '    ',
      ),
    ),
  )
}
