import { isCredential, masked } from '../../shared/credentials.ts'
import { maskedUrl, withoutSecret } from '../../shared/mask.ts'
import type { Screen } from '../../shared/screen.ts'
import { plain, table } from '../../shared/text.ts'
import type { ReportedDelivery } from './received.ts'
import type { Lesson } from './teach/teacher.ts'

type Described = ReturnType<typeof describe>

interface MaskOptions {
  readonly secret: string | undefined
  /** The last path segment is the secret. */
  readonly tokenInPath: boolean
}

/** Masks credentials and collects what both outputs show. */
export function describe(
  { delivery, method, report, event, otherPayload }: ReportedDelivery,
  { secret, tokenInPath }: MaskOptions,
  lesson?: Lesson,
) {
  const hide = (text: string): string => withoutSecret(text, secret)
  return {
    at: new Date().toISOString(),
    method,
    url: hide(maskedUrl(delivery.url, tokenInPath)),
    outcome: report.outcome,
    status: report.status,
    ...(report.reason !== undefined && { reason: report.reason }),
    headers: delivery.fields.map(([name, value]) => {
      if (isCredential(name, value)) return [name, hide(masked(value))] as const
      // Proxies repeat the URL in headers such as X-Forwarded-Uri.
      return [name, hide(isUrl.test(value) ? maskedUrl(value, tokenInPath) : value)] as const
    }),
    ...(event && { event }),
    ...(otherPayload && { event: { type: lesson?.type ?? 'unknown' } }),
  }
}

const isUrl = /^(\w+:\/)?\//

export function printDelivery(described: Described, { print, paint }: Screen): void {
  const { at, method, url, outcome, status, reason, headers, event } = described
  const style = status !== 200 ? 'yellow' : outcome === 'accepted' ? 'green' : 'dim'
  print(`\n${paint('dim', at.slice(11, 23))}  ${paint(style, `${status} ${outcome}`)}  ${plain(`${method} ${url}`)}`)
  if (reason !== undefined) print(`  ${paint('yellow', plain(reason))}`)
  if (event !== undefined && !('mediaId' in event)) print(`  ${plain(event.type)}`)
  else if (event !== undefined) {
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

/** Prints the fields of another service's delivery and the sender, if they are new. */
export function printLesson(
  { fields, code, isNew }: Lesson,
  written: string | undefined,
  { print, paint }: Screen,
): void {
  if (!isNew) return
  print(
    `  another service's event; its fields:\n${paint('dim', fields.map((line) => `    ${plain(line)}`).join('\n'))}`,
  )
  print(written === undefined ? `  a sender for it:\n\n${code}` : `  ${written}`)
}
