import { WebhookError } from '../errors.ts'
import type { SignedDelivery } from './verifier.ts'

/** What a signature covers: text, `{timestamp}` and `{url}`, followed by `{body}`. */
export type SignedTemplate = `${string}{body}`

/** Returns the text before the body in the signed content of a delivery. */
export type FillTemplate = (delivery: Pick<SignedDelivery, 'url'>, timestamp: string) => string

/** @throws WebhookError `invalid_option` */
export function readTemplate(owner: string, template: string, hasTimestamp: boolean): FillTemplate {
  const parts = template.split(/\{(\w*)\}/)
  const names = parts.filter((_, index) => index % 2 === 1)
  const isComplete = names.pop() === 'body' && parts.at(-1) === ''
  if (!isComplete || names.some((name) => name !== 'timestamp' && name !== 'url'))
    throw invalid(owner, 'signed must be text, {timestamp} and {url}, followed by {body}')
  if (names.includes('timestamp') && !hasTimestamp)
    throw invalid(owner, 'signed has {timestamp}, which needs the option timestamp')
  const before = parts.slice(0, -2)
  const [text = ''] = before
  if (names.length === 0) return () => text
  const fill = (name: string, url: string, timestamp: string) => (name === 'url' ? pathOf(url) : timestamp)
  return ({ url }, timestamp) =>
    before.map((part, index) => (index % 2 === 0 ? part : fill(part, url, timestamp))).join('')
}

/** Path and query. Some platforms pass absolute URLs, with the host as they see it. */
const pathOf = (url: string): string => url.replace(/^[a-z]+:\/\/[^/?#]*/i, '')

const invalid = (owner: string, problem: string): WebhookError =>
  new WebhookError('invalid_option', `${owner}: ${problem}`)
