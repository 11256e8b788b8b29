import type { Context, HonoRequest } from 'hono'
import { HTTPException } from 'hono/http-exception'
import * as z from 'zod'
import type { FlagName } from '../../../events/media-service/catalogue.ts'
import { parseJson, readText } from '../http/read-body.ts'
import { digits, oneOf, readInput, text } from '../shared/input.ts'
import { subscriptionFlags } from '../workspace/webhooks.ts'
import type { ApiRules } from './rules.ts'

export const notBlank = (name: z.ZodType<string>) =>
  name.refine((given) => given.trim() !== '', { error: 'must not be blank' })

/** A delivery URL of any length. Trimmed, otherwise kept as written. */
export const url = text
  .trim()
  .refine((given) => /^https?:\/\//i.test(given) && URL.canParse(given), { error: 'must be an http or https URL' })

const maxTtl = 2_147_483_647

/**
 * A lifetime in seconds, as a number or as digits: the documentation shows a number, the official client sends text. A
 * fraction is rejected, because its text isn't digits only.
 */
export const ttl = z.preprocess((given) => (typeof given === 'number' ? `${given}` : given), digits(1, maxTtl))

const flag = z.boolean({ error: 'must be true or false' }).optional()

export const flags = Object.fromEntries(subscriptionFlags.map((name) => [name, flag])) as Record<FlagName, typeof flag>

export const listQuery = <const SortFields extends readonly string[]>(sortFields: SortFields, maxPage: number) => ({
  offset: digits(0, Number.MAX_SAFE_INTEGER).optional(),
  limit: digits(1, maxPage).optional(),
  sort_by: oneOf(sortFields).optional(),
  order_by: oneOf(['asc', 'desc']).optional(),
  search: text.optional(),
})

/**
 * Converts form or query fields. `true` and `false` become booleans in subscription flags. A repeated field becomes an
 * array, which no schema accepts.
 */
function fromText(fields: URLSearchParams): Record<string, unknown> {
  return Object.fromEntries([...new Set(fields.keys())].map((name) => [name, fieldValue(name, fields.getAll(name))]))
}

function fieldValue(name: string, given: readonly string[]): unknown {
  const [value, ...more] = given
  if (more.length > 0) return given
  const isFlag = (subscriptionFlags as readonly string[]).includes(name)
  return isFlag && (value === 'true' || value === 'false') ? value === 'true' : value
}

/** @throws WebhookError `invalid_option` */
export const readQuery = <T>(schema: z.ZodType<T>, { req }: Context): T =>
  readInput('query', schema, fromText(new URL(req.url).searchParams))

/** @throws WebhookError `invalid_option` */
export const readId = ({ req }: Context, { id }: ApiRules): string => readInput('id', id, req.param('id'))

/** @throws HTTPException 400, 413 or 415 */
export async function readBody(req: HonoRequest): Promise<unknown> {
  const mediaType = req.header('content-type')?.split(';')[0]?.trim().toLowerCase() ?? ''
  const parse = Object.hasOwn(parsers, mediaType) ? parsers[mediaType] : undefined
  if (parse === undefined) {
    throw new HTTPException(415, { message: `the content type must be ${Object.keys(parsers).join(' or ')}` })
  }
  return parse(await readText(req))
}

const parsers: Readonly<Record<string, (text: string) => unknown>> = {
  'application/json': parseJson,
  'application/x-www-form-urlencoded': (text) => fromText(new URLSearchParams(text)),
}
