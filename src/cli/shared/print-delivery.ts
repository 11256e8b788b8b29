import { durationText } from '../../internal/duration.ts'
import { withRefusedHint } from '../../internal/refused.ts'
import type { DeliveryRecord, Sending } from '../../service/emulator/sending/sending.ts'
import { secretsIn, withoutSecret } from './mask.ts'
import { secretOf } from './schemes.ts'
import type { Screen } from './screen.ts'
import { align, plain } from './text.ts'

type MaskedTexts = readonly (string | undefined)[]

/** The response body, without secrets of the delivery that the receiver echoed. */
export function maskedAnswer({ answer }: DeliveryRecord, { url, behaviour }: Sending, secrets: MaskedTexts = []) {
  const { sign } = behaviour
  return answer && withoutSecret(answer.body, ...secrets, ...secretsIn(url), sign && secretOf(sign))
}

const widths = [12, 17, 9, 4, -8]

/** Prints a delivery on one line. If it was not acknowledged, a second line says why and when the retry comes. */
export function printDelivery(
  delivery: DeliveryRecord,
  sending: Sending,
  { print, paint }: Screen,
  { secrets, host }: { readonly secrets?: MaskedTexts; readonly host?: boolean } = {},
): void {
  const { attempt, copy, startedAt, durationMs, answer, failure, retryInMs } = delivery
  const cells = align(
    [
      startedAt.toISOString().slice(11, 23),
      // Other services' bodies may have no type.
      plain(sending.payload.type || '-'),
      copy ? 'copy' : `attempt ${attempt}`,
      `${answer?.status ?? '-'}`,
      `${durationMs.toFixed(1)} ms`,
    ],
    widths,
  )
  const status = paint(failure === undefined ? 'green' : 'red', cells[3] ?? '')
  // Host only: the rest of the URL may contain a secret.
  const to = host ? [new URL(sending.url).host] : []
  const body = plain((maskedAnswer(delivery, sending, secrets) ?? '').slice(0, 200))
  print([...cells.with(3, status), ...to, body].join('  ').trimEnd())
  if (failure === undefined) return
  const retry = retryInMs === undefined ? '' : `; retry in ${durationText(retryInMs)}`
  print(`${' '.repeat(14)}not acknowledged (${failure.reason}): ${withRefusedHint(plain(failure.message))}${retry}`)
}
