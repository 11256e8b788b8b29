import { jsonTypes } from '../../../../events/json.ts'
import { pasted } from '../../../help.ts'
import { quote } from '../../../shared/schemes.ts'
import { isForm } from '../received.ts'
import { findFirst, type Guess, guess, isTypeName, type Sample, unknown } from './guess.ts'
import { type Shape, shapeOf } from './shape.ts'

/** The type of a delivery, as the guessed `read` finds it. Only a type name may be printed. */
export function typeOf({ type }: Guess, sample: Sample): string | undefined {
  const found = findFirst(type, sample)
  return isTypeName(found) ? found : undefined
}

/**
 * Writes a module with a sender that accepts the samples, and the verifier. It contains no value of a sample but names of
 * types.
 * @param verifier code of the verifier: an expression, or statements that declare `verify`
 */
export function senderCode(samples: readonly Sample[], verifier: string | undefined): string {
  const found = guess(samples)
  const imports = ['defineSender', ...importsOf(verifier)].join(', ')
  return [
    `// Guessed by ${pasted} listen. Delete fields that you don't use: data without a required one is rejected.`,
    `import { ${imports} } from 'media-webhooks'`,
    `import { z } from 'zod'`,
    '',
    'export const sender = defineSender({',
    "  name: 'my-service', // TODO: the name of the service, for logs and errors",
    '  events: {',
    ...schemasByType(samples, found).map(([type, schema]) => `    ${nameCode(type)}: ${schema},`),
    '  },',
    ...bodyCode(samples),
    ...(samples.some(({ isListed }) => isListed) ? listCode(found) : readCode(found)),
    '})',
    '',
    ...verifierCode(verifier),
    '',
  ].join('\n')
}

function schemasByType(samples: readonly Sample[], found: Guess): (readonly [type: string, schema: string])[] {
  const data = new Map<string, unknown[]>()
  for (const sample of samples) {
    const type = typeOf(found, sample)
    const value = found.data?.find(sample)
    // As in `defineSender`: without data, the payload is checked.
    if (type !== undefined) data.set(type, [...(data.get(type) ?? []), value === undefined ? sample.payload : value])
  }
  if (data.size === 0) return [['unknown', 'z.unknown()']]
  return [...data].map(([type, values]) => [type, schemaCode(shapeOf(values), '    ')])
}

const primitives = ['string', 'number', 'boolean']

function schemaCode(shape: Shape, indent = ''): string {
  const { types, fields, entries, items } = shape
  const options = [
    ...types
      .filter((type) => type !== 'null')
      .map((type) => (primitives.includes(type) ? `z.${type}()` : 'z.unknown()')),
    ...(fields && (fields.size > 0 || !entries) ? [objectCode(fields, indent)] : []),
    ...(entries && fields?.size === 0 ? [`z.record(z.string(), ${schemaCode(entries, indent)})`] : []),
    ...(items ? [`z.array(${schemaCode(items, indent)})`] : []),
  ]
  const [only = 'z.unknown()', ...others] = options
  const schema = others.length === 0 ? only : `z.union([${options.join(', ')}])`
  return types.includes('null') ? `${schema}.nullable()` : schema
}

function objectCode(fields: NonNullable<Shape['fields']>, indent: string): string {
  if (fields.size === 0) return 'z.object({})'
  const lines = [...fields].map(([name, field]) => {
    // What is null in one delivery may be absent in another.
    const end = field.optional || field.types.includes('null') ? '.optional()' : ''
    const schema = `${schemaCode(field, `${indent}  `)}${end}`.replace(/\.nullable\(\)\.optional\(\)$/, '.nullish()')
    return `${indent}  ${nameCode(name)}: ${schema},\n`
  })
  return `z.object({\n${lines.join('')}${indent}})`
}

const nameCode = (name: string): string => (/^[a-z_$][\w$]*$/i.test(name) ? name : quote(name))

/** How bodies are written, unless it is JSON as such. */
function bodyCode(samples: readonly Sample[]): string[] {
  const types = new Set(samples.map(({ headers }) => headers.get('content-type') ?? ''))
  if ([...types].some(isForm)) return ["  body: 'form',"]
  const others = [...types].filter((type) => type !== '' && !jsonTypes.takes(type))
  const [other] = others.flatMap((type) => /^[\w.+-]+\/[\w.+-]+/.exec(type)?.[0] ?? [])
  return other === undefined ? [] : [`  contentTypes: [${quote(other)}, 'application/json'],`]
}

/** The names that `read` takes out of the payload, and whether it reads headers. */
function usedBy({ type, mediaId, id, time, data, hasSignedId }: Guess) {
  const used = [...type, ...mediaId, ...(hasSignedId ? [] : [id]), time, data].flatMap((place) => place?.code ?? [])
  const roots = used.flatMap((code) => (/^(headers\.|')/.test(code) ? [] : (/^\w+/.exec(code)?.[0] ?? [])))
  return {
    names: roots.length > 0 ? `{ ${[...new Set(roots)].join(', ')} }` : undefined,
    readsHeaders: used.some((code) => code.startsWith('headers.')),
  }
}

function readCode(found: Guess): string[] {
  const { names, readsHeaders } = usedBy(found)
  const payload = names ?? (readsHeaders ? '_' : '')
  return [`  read: (${payload}${readsHeaders ? ', headers' : ''}) => ({`, ...fieldsCode(found), '  }),']
}

/** For a delivery with a list of events, each of which needs data of its own. */
function listCode(found: Guess): string[] {
  const { names, readsHeaders } = usedBy(found)
  return [
    `  read: (events: Record<string, any>[]${readsHeaders ? ', headers' : ''}) =>`,
    '    events.map((oneEvent) => {',
    ...(names === undefined ? [] : [`      const ${names} = oneEvent`]),
    '      return {',
    ...fieldsCode(found).map((line) => `    ${line}`),
    ...(found.data ? [] : ['        data: oneEvent,']),
    '      }',
    '    }),',
  ]
}

function fieldsCode({ type, mediaId, id, time, data, hasSignedId }: Guess): string[] {
  return [
    choiceCode('type', type, 'the field that says what happened, and a schema for each of its values in events'),
    choiceCode('mediaId', mediaId, 'the id of what the event is about; the events of one id are handled in order'),
    hasSignedId
      ? '    // No id: the signed one of the headers becomes the event key.'
      : id
        ? member('id', id.code)
        : "    // TODO: id, the event's own, the same in every retry. Without one, a hash of the body is the event key.",
    time
      ? member('emittedAt', time.code)
      : '    // TODO: emittedAt, when it happened: RFC 3339 or a Unix time in s or ms',
    ...(data ? [member('data', data.code)] : []),
  ]
}

function choiceCode(name: string, places: Guess['type'], advice: string): string {
  if (places[0] === unknown) return `${member(name, unknown.code)} // TODO: ${advice}`
  const codes = places.map(({ code }) => code)
  // A header may be absent, for the compiler at least.
  return member(name, [...codes, ...(codes.at(-1)?.startsWith('headers.') ? [unknown.code] : [])].join(' || '))
}

const member = (name: string, code: string): string => `    ${name === code ? name : `${name}: ${code}`},`

const importsOf = (verifier = ''): string[] =>
  verifier.startsWith('const ') ? ['hmacSignature', 'type Verifier'] : (/^\w+/.exec(verifier)?.slice() ?? [])

function verifierCode(verifier: string | undefined): string[] {
  if (verifier === undefined)
    return ['// TODO: verify, with the verifier that listen prints. With --secret it finds the right one.']
  if (!verifier.startsWith('const ')) return [`export const verify = ${verifier}`]
  return [verifier.replace('\nconst verify:', '\nexport const verify:')]
}
