import { Choice, Field } from '../../../internal/page/fields.tsx'
import { type Behaviour, type Fault, faults } from '../sending/sending.ts'

interface BehaviourFieldsProps {
  readonly behaviour: Behaviour
  /** Rejected input, to show again. */
  readonly typed: URLSearchParams | undefined
}

/** A webhook's behaviour. style.css shows only the fields of the chosen scheme. */
export function BehaviourFields({ behaviour: { format, sign, fault }, typed }: BehaviourFieldsProps) {
  const signing: Readonly<Record<string, string | undefined>> = sign ?? {}
  return (
    <>
      <Choice label="Format" name="format" value={typed?.get('format') ?? format} options={[['flat'], ['envelope']]} />
      <SigningFields value={(name) => typed?.get(name) ?? signing[name]} />
      <Choice
        label="Fault"
        name="fault"
        value={typed?.get('fault') ?? fault}
        options={[['', 'none'], ...faultChoices]}
      />
      <FaultSentences />
    </>
  )
}

interface SigningFieldsProps {
  /** Returns the value of a field. */
  value(name: string): string | undefined
}

const SigningFields = ({ value }: SigningFieldsProps) => (
  <>
    <Choice label="Signing" name="scheme" value={value('scheme')} options={schemes} />
    <Field label="Username" name="username" value={value('username')} data-schemes="basic-auth" />
    <Field label="Password" name="password" value={value('password')} data-schemes="basic-auth" />
    <Field
      label="Secret"
      name="secret"
      value={value('secret')}
      data-schemes="url-token header-token hmac-signature standard-webhooks timestamped-signature"
    />
    <Choice label="Token in" name="in" value={value('in')} options={[['query'], ['path']]} data-schemes="url-token" />
    <Field label="Parameter" name="parameter" placeholder="token" value={value('parameter')} data-schemes="url-token" />
    <Field
      label="Header"
      name="header"
      placeholder="x-signature"
      value={value('header')}
      data-schemes="header-token hmac-signature timestamped-signature"
    />
    <Field
      label="Prefix"
      name="prefix"
      placeholder="none"
      value={value('prefix')}
      data-schemes="header-token hmac-signature"
    />
    <HmacFields value={value} />
    <Choice
      label="Headers"
      name="headers"
      value={value('headers')}
      options={[['webhook'], ['svix']]}
      data-schemes="standard-webhooks"
    />
    <Field label="Time" name="time" placeholder="t" value={value('time')} data-schemes="timestamped-signature" />
    <Field
      label="Signature"
      name="signature"
      placeholder="v1"
      value={value('signature')}
      data-schemes="timestamped-signature"
    />
  </>
)

const HmacFields = ({ value }: SigningFieldsProps) => (
  <>
    <Choice
      label="Algorithm"
      name="algorithm"
      value={value('algorithm')}
      options={algorithms}
      data-schemes="hmac-signature"
    />
    <Choice
      label="Encoding"
      name="encoding"
      value={value('encoding')}
      options={encodings}
      data-schemes="hmac-signature"
    />
    <Field
      label="Timestamp header"
      name="timestampHeader"
      placeholder="none"
      value={value('timestampHeader')}
      data-schemes="hmac-signature"
    />
    <Field
      label="Signed"
      name="signed"
      placeholder="{body}, or with a timestamp {timestamp}.{body}"
      value={value('signed')}
      data-schemes="hmac-signature"
    />
  </>
)

const schemes = [
  ['', 'none, like the service'],
  ['url-token'],
  ['header-token'],
  ['basic-auth'],
  ['hmac-signature'],
  ['standard-webhooks'],
  ['timestamped-signature'],
] as const
const algorithms = [['sha256'], ['sha1'], ['sha512']] as const
const encodings = [['hex'], ['base64']] as const

export const faultChoices = faults.map((fault) => [fault] as const)

const faultSentences: Readonly<Record<Fault, string>> = {
  duplicate: 'The event is delivered again after it was acknowledged.',
  'concurrent-duplicate': 'The event is delivered twice at the same instant.',
  reorder: 'The event is held back until the next one has been delivered, or for 10 s.',
  delay: 'The first delivery is 5 s late.',
  drop: 'The event is never sent.',
  'corrupt-body': 'The first delivery has a corrupt body, which is not JSON.',
  'cut-connection': 'The connection of the first delivery is cut in the middle of the body.',
  'lost-answer': 'The first delivery arrives, but the connection is cut before its answer is read.',
}

/** Describes the faults. style.css shows only the chosen one. */
export function FaultSentences() {
  return (
    <>
      {faults.map((fault) => (
        <p class="quiet" data-fault={fault}>
          {faultSentences[fault]}
        </p>
      ))}
    </>
  )
}

const fieldsOf: ReadonlyMap<string, readonly string[]> = new Map([
  ['url-token', ['secret', 'in', 'parameter']],
  ['header-token', ['secret', 'header', 'prefix']],
  ['basic-auth', ['username', 'password']],
  ['hmac-signature', ['secret', 'header', 'prefix', 'algorithm', 'encoding', 'timestampHeader', 'signed']],
  ['standard-webhooks', ['secret', 'headers']],
  ['timestamped-signature', ['secret', 'header', 'time', 'signature']],
])

/** Reads a behaviour without validating it. A blank field counts as absent. */
export function readBehaviourForm(form: URLSearchParams): Behaviour {
  const scheme = form.get('scheme') ?? ''
  const sign = scheme === '' ? {} : { sign: { scheme, ...filled(form, fieldsOf.get(scheme) ?? []) } }
  return { ...filled(form, ['format', 'fault']), ...sign } as Behaviour
}

/**
 * Rewrites a behaviour error with the form's labels: `behaviour.sign.timestampHeader must be …` becomes `Timestamp
 * header must be …`. A blank field counts as absent, so its error says that it is missing.
 */
export function withFormLabels(message: string): string {
  const plain = message.replace(/^(?:behaviour\.(?:sign\.)?|\w+: )/, '').replace(/ must be a string$/, ' is missing')
  const spaced = plain.replace(/^[\w.]+(?:: \w+)?/, (name) =>
    name.replace(/[A-Z]/g, ' $&').replace(/\.|:/, ' ').replace('  ', ' ').toLowerCase(),
  )
  return spaced.charAt(0).toUpperCase() + spaced.slice(1)
}

const filled = (form: URLSearchParams, names: readonly string[]) =>
  Object.fromEntries(names.flatMap((name) => (form.get(name) ? [[name, form.get(name)]] : [])))
