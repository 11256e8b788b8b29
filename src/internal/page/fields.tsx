/** Hooks for styles and scripts, such as `data-schemes`. */
type DataAttributes = { readonly [name: `data-${string}`]: string | undefined }

type FieldProps = DataAttributes & {
  readonly label: string
  readonly name: string
  readonly value?: string | undefined
  readonly placeholder?: string
  readonly inputmode?: 'url' | 'numeric'
  readonly required?: boolean
  readonly maxlength?: number
}

export function Field({ label, name, value, placeholder, inputmode, required, maxlength, ...data }: FieldProps) {
  const input = { name, value, placeholder, inputmode, required, maxlength }
  return (
    <label class="field" {...data}>
      <span>{label}</span>
      <input type="text" autocomplete="off" spellcheck={false} {...input} />
    </label>
  )
}

type ChoiceProps = DataAttributes & {
  readonly label: string
  readonly name: string
  readonly value?: string | undefined
  /** Values, with a label where it differs. */
  readonly options: readonly (string | readonly [value: string, label?: string])[]
}

/** A drop-down list. Preselects `value`, or else the first option. */
export function Choice({ label, name, value, options: given, ...data }: ChoiceProps) {
  const options = given.map((each) => (typeof each === 'string' ? ([each] as const) : each))
  const chosen = options.find(([option]) => option === value) ?? options[0]
  return (
    <label class="field" {...data}>
      <span>{label}</span>
      <select name={name}>
        {options.map((option) => (
          <option value={option[0]} selected={option === chosen}>
            {option[1] ?? option[0]}
          </option>
        ))}
      </select>
    </label>
  )
}

export function Tick({ label, name, checked }: { label: string; name: string; checked: boolean }) {
  return (
    <label class="tick">
      <input type="checkbox" name={name} checked={checked} />
      <span>{label}</span>
    </label>
  )
}
