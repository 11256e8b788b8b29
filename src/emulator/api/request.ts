import type { Context, HonoRequest } from 'hono'
import { HTTPException } from 'hono/http-exception'
import * as z from 'zod'
import type { FlagName } from '../../events/media-service/catalogue.ts'
import { parseJson, readText } from '../http/read-body.ts'
import { digits, oneOf, readInput, text } from '../shared/input.ts'
import { subscriptionFlags } from '../workspace/webhooks.ts'
import type { Rules } from './rules.ts'

/** Rejects a name that is blank. */
export const notBlank = (name: z.ZodType<string>) =>
  name.refine((given) => given.trim() !== '', { error: 'must not be blank' })

/** A URL for deliveries, of any length. It is kept as written, except for surrounding white space. */
export const url = text
  .trim()
  .refine((given) => /^https?:\/\//i.test(given) && URL.canParse(given), { error: 'has to be an http or https URL' })

const maxTtl = 2_147_483_647

/**
 * A lifetime in seconds, as a number or as its digits: the documentation shows a number, and the official client sends
 * text. The text of a fraction has no digits only, so it is rejected.
 */
export const ttl = z.preprocess((given) => (typeof given === 'number' ? `${given}` : given), digits(1, maxTtl))

const flag = z.boolean({ error: 'has to be true or false' }).optional()

/** The subscription flags, each optional. */
export const flags = Object.fromEntries(subscriptionFlags.map((name) => [name, flag])) as Record<FlagName, typeof flag>

/** The query parameters of a list. `maxPage` is the maximum number of records in an answer. */
export const listQuery = <const SortFields extends readonly string[]>(sortFields: SortFields, maxPage: number) => ({
  offset: digits(0, Number.MAX_SAFE_INTEGER).optional(),
  limit: digits(1, maxPage).optional(),
  sort_by: oneOf(sortFields).optional(),
  order_by: oneOf(['asc', 'desc']).optional(),
  search: text.optional(),
})

/**
 * Converts the fields of a form or a query. `true` and `false` become booleans if the field is a subscription flag. A
 * field given more than once becomes an array, which no schema accepts.
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

/**
 * Validates the query of a request.
 * @throws WebhookError `invalid_option`
 */
export const readQuery = <T>(schema: z.ZodType<T>, { req }: Context): T =>
  readInput('query', schema, fromText(new URL(req.url).searchParams))

/**
 * Reads the id in the path of a request.
 * @throws WebhookError `invalid_option`
 */
export const readId = ({ req }: Context, { id }: Rules): string => readInput('id', id, req.param('id'))

/**
 * Reads and parses the body of a request, which is JSON or a form.
 * @throws HTTPException 400, 413 or 415
 */
export async function readBody(req: HonoRequest): Promise<unknown> {
  const mediaType = req.header('content-type')?.split(';')[0]?.trim().toLowerCase() ?? ''
  const parse = Object.hasOwn(parsers, mediaType) ? parsers[mediaType] : undefined
  if (parse === undefined) {
    throw new HTTPException(415, { message: `the content type has to be ${Object.keys(parsers).join(' or ')}` })
  }
  return parse(await readText(req))
}

const parsers: Readonly<Record<string, (text: string) => unknown>> = {
  'application/json': parseJson,
  'application/x-www-form-urlencoded': (text) => fromText(new URLSearchParams(text)),
}
