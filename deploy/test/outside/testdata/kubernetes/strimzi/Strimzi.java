import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.dataformat.yaml.YAMLFactory;
import io.strimzi.api.kafka.model.kafka.Kafka;
import io.strimzi.api.kafka.model.nodepool.KafkaNodePool;
import io.strimzi.api.kafka.model.topic.KafkaTopic;
import io.strimzi.api.kafka.model.user.KafkaUser;
import java.io.File;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Reads the resources of Strimzi in a file with the operator's own classes, and prints what these refuse, do not know or miss. It ends
 * with code 1 if there is anything. The last line is the number of resources.
 */
public class Strimzi {
    static final Map<String, Class<?>> KINDS = Map.of("Kafka", Kafka.class, "KafkaNodePool", KafkaNodePool.class,
            "KafkaTopic", KafkaTopic.class, "KafkaUser", KafkaUser.class);
    static final List<String> problems = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        ObjectMapper mapper = new ObjectMapper(new YAMLFactory());
        int read = 0;
        for (JsonNode node : mapper.readerFor(JsonNode.class).<JsonNode>readValues(new File(args[0])).readAll()) {
            if (!node.path("apiVersion").asText().startsWith("kafka.strimzi.io/")) {
                continue;
            }
            String name = node.path("kind").asText() + " " + node.path("metadata").path("name").asText();
            Class<?> kind = KINDS.get(node.path("kind").asText());
            read++;
            try {
                check(name, mapper.treeToValue(node, kind));
            } catch (Exception e) {
                problems.add(name + ": " + e.getMessage());
            }
        }
        problems.forEach(System.out::println);
        System.out.println(read);
        System.exit(problems.isEmpty() ? 0 : 1);
    }

    /** Looks for fields that a class does not have, and for required ones that are missing. */
    static void check(String path, Object value) throws Exception {
        if (value instanceof List<?> list) {
            for (int i = 0; i < list.size(); i++) {
                check(path + "[" + i + "]", list.get(i));
            }
            return;
        }
        if (value == null || value.getClass().isEnum()
                || !value.getClass().getName().startsWith("io.strimzi.") && !value.getClass().getName().startsWith("io.fabric8.")) {
            return;
        }
        for (Method getter : value.getClass().getMethods()) {
            String name = getter.getName();
            if (getter.getParameterCount() > 0 || !name.startsWith("get") || name.equals("getClass")) {
                continue;
            }
            if (name.equals("getAdditionalProperties")) {
                ((Map<?, ?>) getter.invoke(value)).keySet().forEach(key -> problems.add(path + ": unknown field " + key));
                continue;
            }
            Class<?> type = getter.getReturnType();
            if (!type.getName().startsWith("io.strimzi.") && !type.getName().startsWith("io.fabric8.") && type != List.class
                    && getter.getAnnotation(JsonProperty.class) == null) {
                continue;
            }
            Object field = getter.invoke(value);
            String below = path + "." + name.substring(3);
            JsonProperty property = getter.getAnnotation(JsonProperty.class);
            if (field == null && property != null && property.required()) {
                problems.add(below + ": is required");
            }
            check(below, field);
        }
    }
}
