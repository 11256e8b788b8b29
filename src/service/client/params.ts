import * as z from 'zod'
import { WebhookError } from '../../errors.ts'

/** A method's parameters. Strict, because a misspelt field would silently do nothing. */
export const params = <Shape extends z.ZodRawShape>(shape: Shape) =>
  z.strictObject(shape, { error: ({ code }) => (code === 'invalid_type' ? 'must be an object' : undefined) })

const text = z.string({ error: 'must be text' })

export const flag = z.boolean({ error: 'must be true or false' })

export const wholeNumber = (min: number, max?: number) =>
  z
    .int({
      error: `must be a whole number ${max === undefined ? `of at least ${min}` : `from ${min} to ${max}`}`,
    })
    .min(min)
    .max(max ?? Number.MAX_SAFE_INTEGER)

export const oneOf = <const Words extends readonly string[]>(...words: Words) =>
  z.enum(words, { error: `must be one of ${words.join(', ')}` })

const nameFault = { error: 'must be text that is not blank' }

/** Trimmed, because the service was observed to trim names: a search for the untrimmed one would find nothing. */
export const name = z.string(nameFault).trim().min(1, nameFault)

const urlFault = { error: 'must be an http or https URL' }

// URL.canParse accepts `https:example.com` and line breaks. The service, which gets the text unchanged, does not.
export const httpUrl = z
  .string(urlFault)
  .refine((value) => /^https?:\/\/[^\s\p{Cc}]+$/iu.test(value) && URL.canParse(value), urlFault)

// Rejects `.` and `..`, which change the path, and lone surrogates, which can't be encoded.
export const id = z
  .string({ error: 'must be a string' })
  .regex(/^(?!\.{1,2}$)\P{Surrogate}+$/u, { error: 'is empty, or not an id' })

export const paging = {
  search: text.optional(),
  offset: wholeNumber(0).optional(),
  limit: wholeNumber(1).optional(),
  orderBy: oneOf('asc', 'desc').optional(),
}

/** Describes the first fault, such as `ttl must be …`. Names the field and the fix, never the value. */
export function faultIn({ issues }: z.ZodError, schema: z.ZodObject, noun: 'parameter' | 'option'): string {
  const issue = issues.find(({ code }) => code === 'unrecognized_keys') ?? issues[0]
  if (issue?.code === 'unrecognized_keys') {
    return `there is no ${noun} ${issue.keys.join(', ')}; there are ${Object.keys(schema.shape).join(', ')}`
  }
  return `${issue?.path.join('.') || `${noun}s`} ${issue?.message}`
}

/** @throws WebhookError `invalid_option`, with the `owner` of the options in the message */
export function readOptions<Schema extends z.ZodObject>(
  owner: string,
  schema: Schema,
  given: unknown,
): z.output<Schema> {
  const result = schema.safeParse(given)
  if (result.success) return result.data
  throw new WebhookError('invalid_option', `${owner}: ${faultIn(result.error, schema, 'option')}`)
}

export function parseUrl(value: string): URL | undefined {
  return URL.canParse(value) ? new URL(value) : undefined
}
