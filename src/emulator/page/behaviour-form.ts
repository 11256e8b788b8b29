import type { Behaviour } from '../sending/sending.ts'

/** Which fields of the form each signing scheme has. */
const fieldsOf: Readonly<Record<string, readonly string[]>> = {
  'url-token': ['secret', 'in', 'parameter'],
  'header-token': ['secret', 'header', 'prefix'],
  'basic-auth': ['username', 'password'],
  'hmac-signature': ['secret', 'header', 'prefix', 'algorithm', 'encoding', 'timestampHeader'],
  'standard-webhooks': ['secret'],
}

/** The behaviour that a form describes, which may make no sense. A field that is blank is one that is left out. */
export function readBehaviourForm(form: URLSearchParams): Behaviour {
  const scheme = form.get('scheme') ?? ''
  const sign = scheme === '' ? {} : { sign: { scheme, ...filled(form, fieldsOf[scheme] ?? []) } }
  return { ...filled(form, ['format', 'fault']), ...sign } as Behaviour
}

/**
 * Why a behaviour is refused, in the words of the form: `behaviour.sign.timestampHeader has to be …` is `Timestamp header
 * has to be …`. A blank field is one that is left out, and so no text.
 */
export function inWordsOfForm(message: string): string {
  const told = message.replace(/^(?:behaviour\.(?:sign\.)?|\w+: )/, '').replace(/ has to be a text$/, ' is missing')
  const spaced = told.replace(/^[\w.]+/, (name) => name.replace(/[A-Z]/g, ' $&').replace('.', ' ').toLowerCase())
  return spaced.charAt(0).toUpperCase() + spaced.slice(1)
}

const filled = (form: URLSearchParams, names: readonly string[]) =>
  Object.fromEntries(names.flatMap((name) => (form.get(name) ? [[name, form.get(name)]] : [])))
