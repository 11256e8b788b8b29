import { WebhookError } from '../errors.ts'
import { decoder, encoder } from '../internal/utf8.ts'
import type { SignedDelivery } from './verifier.ts'

/** What a signature covers: text, `{timestamp}` and `{url}`, followed by `{body}` or the fields of a `{form}`. */
export type SignedTemplate = `${string}{body}` | `${string}{form}`

/** What is signed: text and then bytes. */
export interface SignedContent {
  readonly prefix: string
  readonly body: Uint8Array
}

/** Returns the signed content of a delivery. */
export type FillTemplate = (delivery: Pick<SignedDelivery, 'url' | 'body'>, timestamp: string) => SignedContent

/** @throws WebhookError `invalid_option` */
export function readTemplate(owner: string, template: string, hasTimestamp: boolean): FillTemplate {
  const parts = template.split(/\{(\w*)\}/)
  const names = parts.filter((_, index) => index % 2 === 1)
  const last = names.pop()
  const isComplete = (last === 'body' || last === 'form') && parts.at(-1) === ''
  if (!isComplete || names.some((name) => name !== 'timestamp' && name !== 'url'))
    throw invalid(owner, 'signed must be text, {timestamp} and {url}, followed by {body} or {form}')
  if (names.includes('timestamp') && !hasTimestamp)
    throw invalid(owner, 'signed has {timestamp}, which needs the option timestamp')
  const contentOf = last === 'form' ? formFields : (body: Uint8Array) => body
  const before = parts.slice(0, -2)
  const [text = ''] = before
  if (names.length === 0) return ({ body }) => ({ prefix: text, body: contentOf(body) })
  const fill = (name: string, url: string, timestamp: string) => (name === 'url' ? pathOf(url) : timestamp)
  return ({ url, body }, timestamp) => ({
    prefix: before.map((part, index) => (index % 2 === 0 ? part : fill(part, url, timestamp))).join(''),
    body: contentOf(body),
  })
}

/** Path and query. Some platforms pass absolute URLs, with the host as they see it. */
const pathOf = (url: string): string => url.replace(/^[a-z]+:\/\/[^/?#]*/i, '')

/** The names and values of a form without separators, sorted by name. */
const formFields = (body: Uint8Array): Uint8Array =>
  encoder.encode(
    [...new URLSearchParams(decoder.decode(body))]
      .sort(([a], [b]) => (a < b ? -1 : Number(a > b)))
      .flat()
      .join(''),
  )

const invalid = (owner: string, problem: string): WebhookError =>
  new WebhookError('invalid_option', `${owner}: ${problem}`)
