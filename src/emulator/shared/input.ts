import * as z from 'zod'
import { WebhookError } from '../../errors.ts'

/** A string. */
export const text = z.string({ error: 'has to be a string' })

/** A text that can be written as UTF-8, and so into a body or a URL. */
export const unicode = text.refine((value) => !/\p{Surrogate}/u.test(value), {
  error: 'has to be Unicode: half a pair is in it',
})

/** A whole number in decimal digits. */
export const digits = (min: number, max: number) => {
  const error = `has to be a whole number from ${min} to ${max}`
  return z
    .string({ error })
    .regex(/^\d{1,16}$/, { error })
    .transform(Number)
    .pipe(z.number().min(min, { error }).max(max, { error }))
}

/** What is said of something else than an object. */
export const notAnObject = { error: 'has to be an object' }

/** One of a few words. */
export const oneOf = <const Words extends readonly string[]>(words: Words) =>
  z.enum(words, { error: `has to be one of ${words.join(', ')}` })

/**
 * Reads what came from outside.
 * @param name of the whole
 * @throws WebhookError `invalid_option`, naming the first field that is wrong and never its value
 */
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
