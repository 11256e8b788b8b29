import * as z from 'zod'
import { WebhookError } from '../../../errors.ts'

export const text = z.string({ error: 'must be a string' })

/** A string that UTF-8 can encode, so it can be sent in a body or a URL. */
export const unicode = text.refine((value) => !/\p{Surrogate}/u.test(value), {
  error: 'must be well-formed Unicode: it contains half of a surrogate pair',
})

export const digits = (min: number, max: number) => {
  const error = `must be a whole number from ${min} to ${max}`
  return z
    .string({ error })
    .regex(/^\d{1,16}$/, { error })
    .transform(Number)
    .pipe(z.number().min(min, { error }).max(max, { error }))
}

export const notAnObject = { error: 'must be an object' }

export const oneOf = <const Words extends readonly string[]>(words: Words) =>
  z.enum(words, { error: `must be one of ${words.join(', ')}` })

/** @throws WebhookError `invalid_option`, naming the first wrong field, never its value */
export function readInput<T>(name: string, schema: z.ZodType<T>, input: unknown): T {
  const result = schema.safeParse(input)
  if (result.success) return result.data
  throw new WebhookError('invalid_option', explain(name, result.error.issues[0] as z.core.$ZodIssue))
}

function explain(name: string, issue: z.core.$ZodIssue): string {
  const field = [name, ...issue.path].join('.')
  if (issue.code === 'unrecognized_keys') return `${field} has no field ${issue.keys.join(', ')}`
  return `${field} ${issue.message}`
}
