export default function Entity() {
  return <h1>Entity</h1>;
}
