import { type Behaviour, faults } from '../sending/sending.ts'
import { Choice, Field } from './field.tsx'

interface BehaviourFieldsProps {
  readonly behaviour: Behaviour
  /** What was typed before, if it was refused. */
  readonly typed: URLSearchParams | undefined
}

/** How events are sent to a webhook. Of the signing fields, style.css shows those of the scheme that is chosen. */
export function BehaviourFields({ behaviour: { format, sign, fault }, typed }: BehaviourFieldsProps) {
  const signing: Readonly<Record<string, string | undefined>> = sign ?? {}
  const value = (name: string) => typed?.get(name) ?? signing[name]
  return (
    <>
      <Choice label="Format" name="format" value={typed?.get('format') ?? format} options={[['flat'], ['envelope']]} />
      <Choice label="Signing" name="scheme" value={value('scheme')} options={schemes} />
      <Field label="Username" name="username" value={value('username')} schemes="basic-auth" />
      <Field label="Password" name="password" value={value('password')} schemes="basic-auth" />
      <Field
        label="Secret"
        name="secret"
        value={value('secret')}
        schemes="url-token header-token hmac-signature standard-webhooks"
      />
      <Choice label="Token in" name="in" value={value('in')} options={[['query'], ['path']]} schemes="url-token" />
      <Field label="Parameter" name="parameter" placeholder="token" value={value('parameter')} schemes="url-token" />
      <Field
        label="Header"
        name="header"
        placeholder="x-signature"
        value={value('header')}
        schemes="header-token hmac-signature"
      />
      <Field
        label="Prefix"
        name="prefix"
        placeholder="none"
        value={value('prefix')}
        schemes="header-token hmac-signature"
      />
      <Choice
        label="Algorithm"
        name="algorithm"
        value={value('algorithm')}
        options={algorithms}
        schemes="hmac-signature"
      />
      <Choice label="Encoding" name="encoding" value={value('encoding')} options={encodings} schemes="hmac-signature" />
      <Field
        label="Timestamp header"
        name="timestampHeader"
        placeholder="none: the body alone is signed"
        value={value('timestampHeader')}
        schemes="hmac-signature"
      />
      <Choice
        label="Fault"
        name="fault"
        value={typed?.get('fault') ?? fault}
        options={[['', 'none'], ...faultChoices]}
      />
    </>
  )
}

const schemes = [
  ['', 'none, as the service'],
  ['url-token'],
  ['header-token'],
  ['basic-auth'],
  ['hmac-signature'],
  ['standard-webhooks'],
] as const
const algorithms = [['sha256'], ['sha1'], ['sha512']] as const
const encodings = [['hex'], ['base64']] as const

/** The faults to choose from. */
export const faultChoices = faults.map((fault) => [fault] as const)
