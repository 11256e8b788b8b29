import { WebhookError } from '../../../errors.ts'
import { TextDecoder } from '../../../internal/realm.ts'
import { decoder } from '../../../internal/utf8.ts'

/** Maximum form size (bytes). A list page holds at most 50 keys. */
const maxForm = 1_048_576

/**
 * Reads the form of a request.
 * @throws WebhookError `body_consumed`, `too_large` or `incomplete`
 */
export async function readForm(request: Request): Promise<URLSearchParams> {
  if (request.bodyUsed) throw consumed()
  if (Number(request.headers.get('content-length')) > maxForm) throw tooLarge()
  const reader = request.body?.getReader()
  const stream = new TextDecoder()
  let text = ''
  let size = 0
  try {
    for (let part = await reader?.read(); part?.value; part = await reader?.read()) {
      size += part.value.length
      if (size > maxForm) throw tooLarge()
      text += stream.decode(part.value, { stream: true })
    }
  } catch (error) {
    throw error instanceof WebhookError ? error : new WebhookError('incomplete', 'the form was cut off')
  }
  return new URLSearchParams(text + stream.decode())
}

/**
 * Rebuilds a form from what a body parser such as `express.urlencoded()` left in `request.body`.
 * @throws WebhookError `body_consumed` if it left nothing
 */
export function formFromParsed(parsed: unknown): string {
  if (typeof parsed === 'string') return parsed
  if (ArrayBuffer.isView(parsed)) return decoder.decode(parsed as Uint8Array)
  if (typeof parsed !== 'object' || parsed === null) throw consumed()
  const form = new URLSearchParams()
  // Parsers turn a repeated name into an array, and qs turns a very long one into an object.
  for (const [name, value] of Object.entries(parsed))
    for (const each of typeof value === 'object' && value !== null ? Object.values(value) : [value])
      form.append(name, String(each))
  return form.toString()
}

const consumed = () =>
  new WebhookError('body_consumed', 'a body parser has already read the form: mount the dashboard before body parsers')

const tooLarge = () => new WebhookError('too_large', `the form is larger than ${maxForm} bytes`)
